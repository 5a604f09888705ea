import { withoutUsage } from '../../shared/dialects/chat/usage-request.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error.ts'
import type { Cause, ErrorClass } from '../../shared/wire/router/trace.ts'
import type { Provider, Rung } from '../config/routing-config.ts'
import { bestAttempt } from '../policy/best-attempt.ts'
import { afterFault, afterGateFail, afterOverflow, type Next, type Progress } from '../policy/next-rung.ts'
import { type AnsweredCall, type RefusedCall, ranOut } from './call.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import type { EarlyAnswer, EarlyOut } from './early-answer.ts'
import { judging } from './judging.ts'
import { pricedCall } from './priced-call.ts'
import type { Tried } from './receipt.ts'
import { injectsUsage, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

/** How it ended; the attempts stand in `tried` whatever the end. */
export type CascadeEnd =
  | { kind: 'answer'; servedFrom: 'attempt' | 'best_attempt'; served: Tried & { call: AnsweredCall } }
  | { kind: 'refusal'; refused: RefusedCall; from: Provider['dialect'] }
  | { kind: 'error'; error: RouterErrorCase; message: string }
  | { kind: 'aborted' }

export interface CascadeResult {
  end: CascadeEnd
  tried: readonly Tried[]
  /** Stretches in which an upstream call or a gate was in flight. */
  busy: readonly (readonly [number, number])[]
}

/** A timer may fire a moment before the clock that the breaker reads is there, and the retry would find it open. */
const TIMER_SLACK_MS = 5

/** Why no further attempt is made. */
type Stop = { because: 'gates' | 'upstream' } | { because: 'budget'; message: string }

/**
 * The cascade (router contract §4, steps 5 to 12): call, gate, decide, one rung up; fail over when an upstream fails;
 * never a call that the budget does not cover.
 */
export async function cascade(
  plan: CascadePlan,
  deps: CascadeDeps,
  signal: AbortSignal,
  /** Opens the way of frames that leave before their answer is whole; undefined where the client reads no stream. */
  early?: (rung: Rung) => EarlyOut,
): Promise<CascadeResult> {
  const { route, config } = plan
  const { clock } = deps
  const tried: Tried[] = []
  const busy: [number, number][] = []
  let next: Next = { rung: plan.start.rung, cause: 'failover' }
  let cause: Cause = 'start'

  for (;;) {
    const rung = route.ladder[next.rung]!
    if (next.cause === 'retry') {
      const waited = await sleep(next.waitMs + TIMER_SLACK_MS, signal).then(
        () => true,
        () => false,
      )
      if (!waited) return { end: { kind: 'aborted' }, tried, busy }
    }
    const made = await attempt(rung, cause)
    if ('stop' in made) return { end: exhausted(made.stop), tried, busy }
    const { one, out } = made
    tried.push(one)
    busy.push([one.call.startedAt, clock.monotonic()])
    if (signal.aborted || one.errorClass === 'client_abort') return { end: { kind: 'aborted' }, tried, busy }
    if (one.call.kind === 'answered' && one.verdict === 'pass') {
      return { end: { kind: 'answer', servedFrom: 'attempt', served: { ...one, call: one.call } }, tried, busy }
    }
    if (out?.began) return { end: brokenOff(one), tried, busy }
    const step = after(one)
    if ('end' in step) return { end: step.end, tried, busy }
    if (step.next.rung === null) return { end: exhausted(step.stop), tried, busy }
    next = step.next
    cause = step.next.cause
  }

  /** Parts of an answer are with the client, so nothing else can be served. */
  function brokenOff({ call, rung }: Tried): CascadeEnd {
    if (call.kind === 'refused') return { kind: 'refusal', refused: call, from: rung.dialect }
    return call.kind === 'answered'
      ? { kind: 'error', error: 'gate_failed', message: 'the answer failed a gate after its beginning had been sent' }
      : { kind: 'error', error: 'upstream', message: 'the upstream broke off after the beginning had been sent' }
  }

  /** What an attempt that was not served leads to. */
  function after({ call, rung }: Tried): { next: Next; stop: Stop } | { end: CascadeEnd } {
    const progress = progressNow()
    const { maxRetryWaitS } = config.limits
    if (call.kind === 'answered') return { next: afterGateFail(progress), stop: { because: 'gates' } }
    if (call.kind === 'broken')
      return { next: afterFault(progress, null, maxRetryWaitS), stop: { because: 'upstream' } }
    if (call.errorClass === 'context_overflow') return { next: afterOverflow(progress), stop: { because: 'upstream' } }
    const ownKey = call.errorClass === 'auth' && plan.credential(rung) !== 'passthrough'
    if (call.failover || ownKey) {
      return { next: afterFault(progress, call.retryAfterMs ?? null, maxRetryWaitS), stop: { because: 'upstream' } }
    }
    // What only the client can put right goes back to it, unless an earlier attempt has something to serve.
    const best = bestSoFar()
    return { end: best ?? { kind: 'refusal', refused: call, from: rung.dialect } }
  }

  function progressNow(): Progress {
    return {
      ladder: route.ladder.map(one => ({
        rung: one.rung,
        provider: one.provider,
        eligible: plan.eligible.includes(one.rung),
        maxInputTokens: one.maxInputTokens,
        callable: deps.breakers.isCallable(one.provider, plan.fingerprint(one)),
      })),
      tried: tried.map(one => one.rung.rung),
      escalations: tried.filter(one => one.cause === 'escalation' || one.cause === 'overflow').length,
      retries: tried.filter(one => one.cause === 'retry').length,
      floor: plan.start.floor,
      ceiling: plan.start.ceiling,
      maxEscalations: plan.knobs.maxEscalations,
      maxAttempts: route.maxAttempts,
    }
  }

  function bestSoFar(): CascadeEnd | undefined {
    const best =
      tried[
        bestAttempt(
          tried.map(({ rung, gates, call }) => ({
            rung: rung.rung,
            score: gates?.score ?? null,
            hasOutput: call.kind === 'answered',
          })),
        )
      ]
    if (best?.call.kind !== 'answered') return undefined
    return { kind: 'answer', servedFrom: 'best_attempt', served: { ...best, call: best.call } }
  }

  /** Step 12. */
  function exhausted(stop: Stop): CascadeEnd {
    const best = bestSoFar()
    if (route.onExhausted === 'serve_best' && best) return best
    if (stop.because === 'budget') return { kind: 'error', error: 'budget', message: stop.message }
    if (best) {
      const message =
        'every answer failed the gates of this route, and it serves none of those (on_exhausted = "error")'
      return { kind: 'error', error: 'gate_failed', message }
    }
    const refused = tried.findLast(({ call }) => call.kind === 'refused')
    if (refused?.call.kind === 'refused') return { kind: 'refusal', refused: refused.call, from: refused.rung.dialect }
    const timedOut = tried.at(-1)?.errorClass === 'timeout'
    const message = timedOut
      ? 'no upstream of this route answered in time'
      : 'no upstream of this route could be reached, or none gave a usable answer'
    return { kind: 'error', error: 'upstream', message }
  }

  /** One rung: budget, call, gates, decision (steps 5 to 10). */
  async function attempt(
    rung: Rung,
    why: Cause,
  ): Promise<{ one: Tried; out?: EarlyAnswer | undefined } | { stop: Stop }> {
    const provider = config.providers[rung.provider]!
    const body = rungBody(plan.inbound, rung, provider, route)
    // Rungs whose dialect cannot express the request were never eligible.
    if (!body.ok) return { stop: { because: 'upstream' } }
    const sent = body.body
    const credential = plan.credential(rung)
    const first = tried.length === 0
    const { mediaBytes, mediaCount, maxTokens = rung.maxOutputTokens, n } = plan.inbound.facts
    const judged = judging(rung, plan, deps, signal)
    const out = early && mayReleaseEarly(rung) ? judged.early(early(rung)) : undefined
    const made = await pricedCall(
      {
        model: rung,
        provider,
        url: upstreamUrl(plan.inbound, provider, rung),
        headers: key => upstreamHeaders(plan.inbound, provider, key, { credential, bytes: sent.length, first }),
        body: sent,
        size: { mediaBytes, mediaCount, maxTokens, n },
        shown: injectsUsage(plan.inbound, provider) ? withoutUsage : undefined,
        follow: out,
      },
      plan,
      { ...deps, limits: config.limits },
      signal,
    )
    if (!made.ok) return { stop: { because: 'budget', message: refusalText(made.refusal) } }
    const { call, tokens, cost } = made
    const base = { rung, cause: why, call, sent, tokens, cost }
    if (call.kind !== 'answered') {
      const verdict = call.errorClass === 'client_abort' ? ('cancelled' as const) : ('error' as const)
      return { one: { ...base, verdict, errorClass: call.errorClass as ErrorClass, gates: undefined }, out }
    }
    const whole = await judged.whole(call, out)
    return { one: { ...base, ...whole, errorClass: whole.verdict === 'cancelled' ? left() : undefined }, out }
  }

  /**
   * Contract §4.1. Frames are those of the client's dialect, and of an answer with one choice; where the route gates
   * nothing, the last rung has nobody left to ask.
   */
  function mayReleaseEarly({ rung, dialect }: Rung): boolean {
    const { facts, dialect: own } = plan.inbound
    if (!facts.stream || facts.n !== 1 || dialect !== own) return false
    if (plan.gates.length === 0 && rung === route.ladder.length - 1) return true
    return route.earlyRelease && plan.gates.every(({ onPrefix }) => onPrefix !== undefined)
  }

  function left(): ErrorClass {
    return ranOut(signal) ? 'timeout' : 'client_abort'
  }
}

function refusalText({ scope, limit, used }: { scope: string; limit: NanoUsd; used: NanoUsd }): string {
  const usd = (nano: NanoUsd) => `${nano / 1e9} USD`
  const name = { request: 'request', session: 'session', day: 'day', tenant_day: 'tenant for the day' }[scope] ?? scope
  return `the budget of this ${name} is ${usd(limit)}, of which ${usd(used)} is spent or reserved: the next call could pass it`
}
