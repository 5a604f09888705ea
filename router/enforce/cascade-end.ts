import { errorBody } from '../../shared/dialects/router-errors.ts'
import { outError } from '../../shared/dialects/translate/error.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error-cases.ts'
import type { BudgetRefusal, BudgetScope } from '../budget/ledger.ts'
import { isSameModel } from '../config/model.ts'
import type { Route, Rung } from '../config/routing-config.ts'
import type { Rest } from '../policy/breakers.ts'
import { bestAttempt, OF_REQUEST } from '../policy/next-rung.ts'
import type { AnsweredCall, NoRoomCall, RefusedCall } from './call-upstream.ts'
import type { Tried } from './receipt.ts'

/** How it ended; the attempts stand in `tried` whatever the end. */
export type CascadeEnd =
  | { kind: 'answer'; servedFrom: 'attempt' | 'best_attempt' | 'cache'; served: Tried & { call: AnsweredCall } }
  | { kind: 'refusal'; refused: RefusedCall; from: InboundApi }
  | { kind: 'error'; error: RouterErrorCase; message: string; retryAfterS?: number }
  | { kind: 'aborted' }

/** Why no further attempt is made. */
export type Stop =
  | { because: 'gates' | 'upstream' }
  | { because: 'no_room'; call: NoRoomCall }
  | { because: 'budget' | 'overload'; message: string }

/** No cap was in the way where the process that keeps the accounts did not answer: the same request may pass in a moment. */
export function stoppedBy(refusal: BudgetRefusal): Stop {
  return refusal.away === undefined
    ? { because: 'budget', message: budgetText(refusal) }
    : { because: 'overload', message: refusal.away }
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
  { onExhausted, asked, rests }: Pick<Route, 'onExhausted'> & { asked: string; rests: () => readonly RestingRung[] },
): CascadeEnd {
  const best = bestOf(tried)
  if (onExhausted === 'serve_best' && best) return best
  if (stop.because === 'budget') return { kind: 'error', error: 'budget', message: stop.message }
  if (stop.because === 'no_room') return { kind: 'error', error: 'overloaded', message: stop.call.detail }
  if (stop.because === 'overload') return { kind: 'error', error: 'overloaded', message: stop.message }
  if (best) {
    const message = 'every answer failed the gates of this route, and it serves none of those (on_exhausted = "error")'
    return { kind: 'error', error: 'gate_failed', message }
  }
  if (tried.some(({ withheld }) => withheld)) {
    const message = 'every answer failed a gate that must pass on this route (must_pass), so none is served'
    return { kind: 'error', error: 'gate_failed', message }
  }
  const refused = refusalFor(tried, asked)
  if (refused?.call.kind === 'refused') {
    // A key that was refused stays so; where another rung only rests, the same request may pass when it is over.
    const sooner = ofKey(refused) && !isNamed(refused.rung, asked) ? afterRest(rests(), refused) : undefined
    return sooner ?? { kind: 'refusal', refused: refused.call, from: refused.rung.dialect }
  }
  if (refused === undefined && tried.some(isInexpressible)) {
    const message = 'the answer holds what this dialect cannot express, and no model of this route is left to ask'
    return { kind: 'error', error: 'inexpressible', message }
  }
  const last = tried.at(-1)
  if (last !== undefined && tried.every(({ errorClass }) => errorClass === 'breaker_open')) {
    const all = rests()
    const refusedKey = all.find(hasSaid)
    return afterRest(all, last) ?? (refusedKey ? saidBefore(refusedKey, last) : unreached(last))
  }
  return tried.some(isPaidInVain) ? brokenOff() : unreached(last)
}

/** The head of an answer came, and no answer behind it: what the provider made of it is billed. */
const isPaidInVain = ({ call }: Tried) =>
  (call.kind === 'broken' || call.kind === 'no_room') && call.status !== null && call.status >= 200 && call.status < 300

/** Whether a provider started to answer: it bills that, and a repeat. */
export const isBilled = (one: Tried) =>
  one.call.kind === 'answered' || (one.call.kind === 'refused' && one.call.tokens !== null) || isPaidInVain(one)

function brokenOff(): CascadeEnd {
  const message =
    'an upstream of this route began its answer, and broke it off or gave none that can be used; it may bill that, and a repeat'
  return { kind: 'error', error: 'broken_off', message }
}

interface RestingRung extends Rest {
  rung: Rung
}

/** One that rests because its provider refused a call. */
type RefusedRung = RestingRung & { said: NonNullable<Rest['said']> }

const hasSaid = (one: RestingRung): one is RefusedRung => one.said !== undefined

/** The end for the rung that can be asked first again: it says how soon, as its provider did or in our words. */
function afterRest(rests: readonly RestingRung[], last: Tried): CascadeEnd | undefined {
  const [first] = rests
    .filter(({ ms, said }) => ms > 0 && said?.errorClass !== 'auth')
    .toSorted((one, other) => one.ms - other.ms)
  if (first === undefined) return undefined
  if (hasSaid(first)) return saidBefore(first, last)
  const retryAfterS = seconds(first.ms)
  const message = `no upstream of this route is called now: each failed, or refused this key, a short while ago; the next call goes out in ${retryAfterS} s`
  return { kind: 'error', error: 'upstream', message, retryAfterS }
}

/** The refusal of a key once more, without a call: what clients do about its status is right for the time of its rest as well. */
function saidBefore({ rung, ms, said }: RefusedRung, { call }: Tried): CascadeEnd {
  const { status, error, errorClass } = said
  const words = error?.message || `The upstream answered with status ${status}.`
  const message = `${words} (It said so a short while ago, and is asked again in ${seconds(ms)} s.)`
  const own = { type: null, code: null, param: null, ...error, message }
  const refused: RefusedCall = {
    ...call,
    kind: 'refused',
    status,
    headers: [['retry-after', String(seconds(ms))]],
    body: errorBody(rung.dialect, outError(status, own, '')),
    foreign: true,
    errorClass,
    failover: true,
    retryAfterMs: ms,
  }
  return { kind: 'refusal', refused, from: rung.dialect }
}

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))

function unreached(last: Tried | undefined): CascadeEnd {
  const timedOut = last?.errorClass === 'timeout'
  const message = timedOut
    ? 'no upstream of this route answered in time'
    : 'no upstream of this route could be reached, or none gave a usable answer'
  return { kind: 'error', error: 'upstream', message }
}

/**
 * The refusal that means something to the client: that of the model which it named, else the one that can be over first, else the last
 * one, before those of a key. What a model said of a
 * request that was never meant for it is worth less than the failure of another one.
 */
function refusalFor(tried: readonly Tried[], asked: string): Tried | undefined {
  const named = tried.findLast(({ rung }) => isNamed(rung, asked))
  if (named !== undefined && named.call.kind !== 'answered') return named
  const failed = tried.filter(one => one.call.kind !== 'answered' && !isOfRequest(one))
  const refused = failed.filter(({ call }) => call.kind === 'refused')
  const last = soonest(refused.filter(one => !ofKey(one))) ?? refused.at(-1) ?? failed.at(-1)
  return last ?? (tried.some(isInexpressible) ? undefined : tried.findLast(isOfRequest))
}

/** Refused whatever is asked with this key. */
const ofKey = ({ errorClass }: Tried) => errorClass === 'auth'

/** The one that names the shortest wait, the later of two that name the same, or none. */
function soonest(refused: readonly Tried[]): Tried | undefined {
  const wait = ({ call }: Tried) =>
    (call.kind === 'refused' ? call.retryAfterMs : undefined) ?? Number.POSITIVE_INFINITY
  return refused.reduce<Tried | undefined>((best, one) => (best && wait(best) < wait(one) ? best : one), undefined)
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
  return `the budget of this ${name} is ${usd(limit)}, of which ${usd(used)} is spent or reserved: the next call could exceed it`
}

const BUDGET_NAMES: Record<BudgetScope, string> = {
  request: 'request',
  session: 'session',
  day: 'day',
  tenant_day: 'tenant for the day',
  route_day: 'route for the day',
  route_tenant_day: 'tenant on this route for the day',
}
