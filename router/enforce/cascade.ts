import { atLeast, tokensOfBytes, writtenBytes } from '../../shared/dialects/estimate.ts'
import type { Log } from '../../shared/log/log.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { attemptCost } from '../../shared/prices/price.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error.ts'
import type { Cause, ErrorClass } from '../../shared/wire/router/trace.ts'
import type { BudgetLedger } from '../budget/ledger.ts'
import type { Credential } from '../config/credential.ts'
import type { Provider, Route, RoutingConfig, Rung } from '../config/routing-config.ts'
import { decide } from '../gates/decide.ts'
import type { ErrorBudgets } from '../gates/error-budgets.ts'
import type { Gate } from '../gates/gate.ts'
import { runGates } from '../gates/run-gates.ts'
import { bestAttempt } from '../policy/best-attempt.ts'
import type { Breakers, Ticket } from '../policy/breakers.ts'
import { type BoundFactors, costBound, tokenBound } from '../policy/cost-bound.ts'
import type { Knobs } from '../policy/knobs.ts'
import { afterFault, afterGateFail, afterOverflow, type Next, type Progress } from '../policy/next-rung.ts'
import type { Start } from '../policy/start-rung.ts'
import type { Transport } from '../upstream/transport.ts'
import { type AnsweredCall, type CallResult, callUpstream, notCalled, type RefusedCall, ranOut } from './call.ts'
import type { Tried } from './receipt.ts'
import { type Inbound, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

export interface CascadePlan {
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
  credential: (rung: Rung) => Credential
  /** Whose key is refused or limited; a fingerprint, never the key. */
  fingerprint: (rung: Rung) => string
  account: ReturnType<BudgetLedger['open']>
  boundFactors: BoundFactors
}

export interface CascadeDeps {
  transport: Transport
  clock: Clock
  breakers: Breakers
  errorBudgets: ErrorBudgets
  readKey: (variable: string) => string | undefined
  log: Log
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
    const reserved = plan.account.reserve(boundOf(rung, body.body.length))
    if (!reserved.ok) return { stop: { because: 'budget', message: refusalText(reserved) } }
    const ticket = deps.breakers.enter(rung.provider, plan.fingerprint(rung))
    const credential = plan.credential(rung)
    const sent = body.body
    const key = credential === 'env' && provider.apiKeyEnv !== null ? deps.readKey(provider.apiKeyEnv) : undefined
    const request = {
      rung,
      provider,
      url: upstreamUrl(plan.inbound, provider),
      headers: upstreamHeaders(plan.inbound, provider, key, {
        credential,
        bytes: sent.length,
        first: tried.length === 0,
      }),
      body: sent,
      choices: plan.inbound.facts.n,
    }
    const call =
      ticket === undefined
        ? notCalled(clock.monotonic())
        : await callUpstream(request, { transport: deps.transport, clock, limits: config.limits, signal })
    mark(ticket, call)
    if (call.kind === 'broken' && call.errorClass !== 'client_abort') {
      const { errorClass: error_class, detail } = call
      deps.log.warn('an upstream call failed', { provider: rung.provider, model: rung.model, error_class, detail })
    }
    const tokens = tokensOf(call, sent.length)
    const cost = tokens === null ? 0 : rung.price === null ? null : attemptCost(rung.price, tokens)
    reserved.settle(cost ?? 0)
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

  function boundOf(rung: Rung, bytes: number): NanoUsd {
    if (rung.price === null) return 0
    const { facts } = plan.inbound
    const size = {
      bodyBytes: bytes,
      mediaBytes: facts.mediaBytes,
      mediaCount: facts.mediaCount,
      maxTokens: facts.maxTokens ?? rung.maxOutputTokens,
      n: facts.n,
    }
    return costBound(rung.price, tokenBound(size, plan.boundFactors))
  }
}

/** What the provider counted, else an estimate; null when nothing was generated. */
function tokensOf(call: CallResult, sentBytes: number): Tried['tokens'] {
  if (call.tokens !== null) return call.tokens
  if (call.kind !== 'answered') return null
  const input = { uncached: tokensOfBytes(sentBytes), cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 0 }
  return atLeast(input, writtenBytes(call.candidate))
}

/** Tells the breaker how the call ended. */
function mark(ticket: Ticket | undefined, call: CallResult): void {
  if (!ticket) return
  if (call.kind === 'answered') ticket.succeeded()
  else if (call.errorClass === 'client_abort') ticket.abandoned()
  else if (call.errorClass === 'rate_limited' || call.errorClass === 'auth') {
    ticket.refused(call.kind === 'refused' ? (call.retryAfterMs ?? null) : null)
  } else if (call.kind === 'broken' || (call.status !== null && call.status >= 500)) ticket.failed()
  else ticket.succeeded()
}

function refusalText({ scope, limit, used }: { scope: string; limit: NanoUsd; used: NanoUsd }): string {
  const usd = (nano: NanoUsd) => `${nano / 1e9} USD`
  const name = { request: 'request', session: 'session', day: 'day', tenant_day: 'tenant for the day' }[scope] ?? scope
  return `the budget of this ${name} is ${usd(limit)}, of which ${usd(used)} is spent or reserved: the next call could pass it`
}
