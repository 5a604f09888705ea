import type { NanoUsd } from '../../shared/money/money.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error.ts'
import type { Cause, ErrorClass } from '../../shared/wire/router/trace.ts'
import type { Provider, Route, RoutingConfig, Rung } from '../config/routing-config.ts'
import { decide } from '../gates/decide.ts'
import type { ErrorBudgets } from '../gates/error-budgets.ts'
import type { Gate } from '../gates/gate.ts'
import { runGates } from '../gates/run-gates.ts'
import { bestAttempt } from '../policy/best-attempt.ts'
import type { Knobs } from '../policy/knobs.ts'
import { afterFault, afterGateFail, afterOverflow, type Next, type Progress } from '../policy/next-rung.ts'
import type { Start } from '../policy/start-rung.ts'
import { type AnsweredCall, type RefusedCall, ranOut } from './call.ts'
import { gateCalls } from './gate-calls.ts'
import { type Payer, type PricedCallDeps, pricedCall } from './priced-call.ts'
import type { Tried } from './receipt.ts'
import { type Inbound, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

export interface CascadePlan extends Payer {
  traceId: string
  tenantId: string
  inbound: Inbound
  config: RoutingConfig
  route: Route
  knobs: Knobs
  /** The score below which an answer is not served; null applies none. The same for the whole request. */
  threshold: number | null
  /** The gates of the route, in config order. */
  gates: readonly Gate[]
  start: Start & { rung: number }
  eligible: readonly number[]
}

export interface CascadeDeps extends PricedCallDeps {
  errorBudgets: ErrorBudgets
}

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
export async function cascade(plan: CascadePlan, deps: CascadeDeps, signal: AbortSignal): Promise<CascadeResult> {
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
    const { one } = made
    tried.push(one)
    busy.push([one.call.startedAt, clock.monotonic()])
    if (signal.aborted || one.errorClass === 'client_abort') return { end: { kind: 'aborted' }, tried, busy }
    if (one.call.kind === 'answered' && one.verdict === 'pass') {
      return { end: { kind: 'answer', servedFrom: 'attempt', served: { ...one, call: one.call } }, tried, busy }
    }
    const step = after(one)
    if ('end' in step) return { end: step.end, tried, busy }
    if (step.next.rung === null) return { end: exhausted(step.stop), tried, busy }
    next = step.next
    cause = step.next.cause
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
  async function attempt(rung: Rung, why: Cause): Promise<{ one: Tried } | { stop: Stop }> {
    const provider = config.providers[rung.provider]!
    const body = rungBody(plan.inbound, rung, provider, route)
    // Rungs whose dialect cannot express the request were never eligible.
    if (!body.ok) return { stop: { because: 'upstream' } }
    const sent = body.body
    const credential = plan.credential(rung)
    const first = tried.length === 0
    const { mediaBytes, mediaCount, maxTokens = rung.maxOutputTokens, n } = plan.inbound.facts
    const made = await pricedCall(
      {
        model: rung,
        provider,
        url: upstreamUrl(plan.inbound, provider),
        headers: key => upstreamHeaders(plan.inbound, provider, key, { credential, bytes: sent.length, first }),
        body: sent,
        size: { mediaBytes, mediaCount, maxTokens, n },
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
      return { one: { ...base, verdict, errorClass: call.errorClass as ErrorClass, gates: undefined } }
    }
    const judged = await judge(rung, call)
    return { one: { ...base, ...judged, errorClass: judged.verdict === 'cancelled' ? left() : undefined } }
  }

  function left(): ErrorClass {
    return ranOut(signal) ? 'timeout' : 'client_abort'
  }

  async function judge(rung: Rung, call: AnsweredCall): Promise<Pick<Tried, 'verdict' | 'gates'>> {
    // A paused turn is not an answer yet: it is served as it is (dialects §1.2).
    if (plan.gates.length === 0 || call.finish === 'pause_turn') return { verdict: 'pass', gates: undefined }
    const { traceId, tenantId, inbound } = plan
    const outcome = await runGates({
      gates: plan.gates,
      subject: {
        candidate: call.candidate,
        request: { body: inbound.body, facts: inbound.facts, dialect: inbound.dialect },
        traceId,
        api: inbound.dialect,
        rung: rung.rung,
        model: rung.model,
        upstreamModel: rung.upstreamModel,
        models: gateCalls(plan, rung, deps),
      },
      signal,
      score: route.score,
      isDisabled: id => deps.errorBudgets.isDisabled(tenantId, id),
      cancelOnFail: !route.serveFailedAboveThreshold,
      clock,
    })
    deps.errorBudgets.record(tenantId, outcome.runs)
    const gates = { results: outcome.results, gate: outcome.gate, score: outcome.score, cost: outcome.costNano }
    if (signal.aborted) return { verdict: 'cancelled', gates }
    const { serveFailedAboveThreshold } = route
    const { verdict } = decide(outcome, { threshold: plan.threshold, serveFailedAboveThreshold })
    return { verdict, gates }
  }
}

function refusalText({ scope, limit, used }: { scope: string; limit: NanoUsd; used: NanoUsd }): string {
  const usd = (nano: NanoUsd) => `${nano / 1e9} USD`
  const name = { request: 'request', session: 'session', day: 'day', tenant_day: 'tenant for the day' }[scope] ?? scope
  return `the budget of this ${name} is ${usd(limit)}, of which ${usd(used)} is spent or reserved: the next call could pass it`
}
