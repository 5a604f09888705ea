import type { NanoUsd } from '../../shared/money/money.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error-cases.ts'
import type { BudgetRefusal, BudgetScope } from '../budget/ledger.ts'
import { isSameModel } from '../config/model.ts'
import type { Route, Rung } from '../config/routing-config.ts'
import { bestAttempt, OF_REQUEST } from '../policy/next-rung.ts'
import type { AnsweredCall, RefusedCall } from './call-upstream.ts'
import type { Tried } from './receipt.ts'

/** How it ended; the attempts stand in `tried` whatever the end. */
export type CascadeEnd =
  | { kind: 'answer'; servedFrom: 'attempt' | 'best_attempt' | 'cache'; served: Tried & { call: AnsweredCall } }
  | { kind: 'refusal'; refused: RefusedCall; from: InboundApi }
  | { kind: 'error'; error: RouterErrorCase; message: string; retryAfterS?: number }
  | { kind: 'aborted' }

/** Why no further attempt is made. */
export type Stop = { because: 'gates' | 'upstream' } | { because: 'budget' | 'accounts'; message: string }

/** No cap was in the way where the process that keeps the accounts did not answer: the same request may pass in a moment. */
export function stoppedBy(refusal: BudgetRefusal): Stop {
  return refusal.away === undefined
    ? { because: 'budget', message: budgetText(refusal) }
    : { because: 'accounts', message: refusal.away }
}

/** The answer with the highest score, at a tie of the highest rung; one that the client's dialect cannot express is none. */
export function bestOf(tried: readonly Tried[]): CascadeEnd | undefined {
  const best =
    tried[
      bestAttempt(
        tried.map(({ rung, gates, call, errorClass, withheld }) => ({
          rung: rung.rung,
          score: gates?.score ?? null,
          hasOutput: call.kind === 'answered' && errorClass === undefined && withheld !== true,
        })),
      )
    ]
  if (best?.call.kind !== 'answered') return undefined
  return { kind: 'answer', servedFrom: 'best_attempt', served: { ...best, call: best.call } }
}

/** docs/spec/router.md §4, step 12: no attempt passed and none is left. */
export function exhausted(
  tried: readonly Tried[],
  stop: Stop,
  { onExhausted, asked, restMs }: Pick<Route, 'onExhausted'> & { asked: string; restMs: () => number },
): CascadeEnd {
  const best = bestOf(tried)
  if (onExhausted === 'serve_best' && best) return best
  if (stop.because === 'budget') return { kind: 'error', error: 'budget', message: stop.message }
  if (stop.because === 'accounts') return { kind: 'error', error: 'overloaded', message: stop.message }
  if (best) {
    const message = 'every answer failed the gates of this route, and it serves none of those (on_exhausted = "error")'
    return { kind: 'error', error: 'gate_failed', message }
  }
  if (tried.some(({ withheld }) => withheld)) {
    const message = 'every answer failed a gate that must pass on this route (must_pass), so none is served'
    return { kind: 'error', error: 'gate_failed', message }
  }
  const refused = refusalFor(tried, asked)
  if (refused?.call.kind === 'refused') return { kind: 'refusal', refused: refused.call, from: refused.rung.dialect }
  if (refused === undefined && tried.some(isInexpressible)) {
    const message = 'the answer holds what this dialect cannot express, and no model of this route is left to ask'
    return { kind: 'error', error: 'inexpressible', message }
  }
  if (tried.length > 0 && tried.every(({ errorClass }) => errorClass === 'breaker_open')) {
    const retryAfterS = Math.max(1, Math.ceil(restMs() / 1000))
    const message = `no upstream of this route is called now: each failed, or refused this key, a short while ago; the next call goes out in ${retryAfterS} s`
    return { kind: 'error', error: 'upstream', message, retryAfterS }
  }
  const timedOut = tried.at(-1)?.errorClass === 'timeout'
  const message = timedOut
    ? 'no upstream of this route answered in time'
    : 'no upstream of this route could be reached, or none gave a usable answer'
  return { kind: 'error', error: 'upstream', message }
}

/**
 * The refusal that means something to the client: that of the model which it named, else the last one. What a model said of a
 * request that was never meant for it is worth less than the failure of another one.
 */
function refusalFor(tried: readonly Tried[], asked: string): Tried | undefined {
  const named = tried.findLast(({ rung }) => isNamed(rung, asked))
  if (named !== undefined && named.call.kind !== 'answered') return named
  const failed = tried.filter(one => one.call.kind !== 'answered' && !isOfRequest(one))
  const last = failed.findLast(({ call }) => call.kind === 'refused') ?? failed.at(-1)
  return last ?? (tried.some(isInexpressible) ? undefined : tried.findLast(isOfRequest))
}

const isInexpressible = ({ errorClass }: Tried) => errorClass === 'untranslatable'

/** Whether a rung is the model that the request names; `auto` names none. */
export function isNamed(rung: Rung, asked: string): boolean {
  return isSameModel(rung, { model: asked, upstreamModel: asked })
}

/** Whether an upstream refused the request itself: what it asks for, how large it is, or the model. */
export function isOfRequest({ call }: Pick<Tried, 'call'>): boolean {
  return call.kind === 'refused' && !call.failover && call.status !== null && OF_REQUEST.has(call.status)
}

function budgetText({ scope, limit, used }: BudgetRefusal): string {
  const usd = (nano: NanoUsd) => `${nano / 1e9} USD`
  const name = BUDGET_NAMES[scope]
  return `the budget of this ${name} is ${usd(limit)}, of which ${usd(used)} is spent or reserved: the next call could pass it`
}

const BUDGET_NAMES: Record<BudgetScope, string> = {
  request: 'request',
  session: 'session',
  day: 'day',
  tenant_day: 'tenant for the day',
  route_day: 'route for the day',
  route_tenant_day: 'tenant on this route for the day',
}
