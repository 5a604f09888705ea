import { withoutUsage } from '../../shared/dialects/chat/usage-request.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { Cause, ErrorClass } from '../../shared/wire/router/trace.ts'
import type { Rung } from '../config/routing-config.ts'
import {
  afterFault,
  afterGateFail,
  afterOverflow,
  afterRefusal,
  type Next,
  type Progress,
} from '../policy/next-rung.ts'
import { ranOut } from './call-upstream.ts'
import { bestOf, type CascadeEnd, exhausted, isNamed, isOfRequest, type Stop, stoppedBy } from './cascade-end.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import type { EarlyAnswer, EarlyOut } from './early-answer.ts'
import { judgeAnswer } from './judge-answer.ts'
import { type PricedCall, pricedCall } from './priced-call.ts'
import type { Tried } from './receipt.ts'
import { MOST_LEFT_OUT, settingToLeaveOut } from './refit.ts'
import { learnRefused, refusedOf } from './refused-settings.ts'
import { isExpressible } from './render-answer.ts'
import { injectsUsage, rungBody, upstreamHeaders, upstreamUrl } from './upstream-request.ts'

const NONE: ReadonlySet<string> = new Set()

export interface CascadeResult {
  end: CascadeEnd
  tried: readonly Tried[]
  /** Stretches in which an upstream call or a gate was in flight. */
  busy: readonly (readonly [number, number])[]
}

/** A timer may fire a moment before the clock that the breaker reads is there, and the retry would find it open. */
const TIMER_SLACK_MS = 5

/** Where a pass is as likely as not (docs/spec/router.md §4.2). */
const OPEN_CHANCE = { least: 0.35, most: 0.65 }

/** A call under way, and what was sent. */
interface Asked {
  made: Promise<PricedCall>
  sent: Uint8Array
  changes: Tried['changes']
}

interface HowAsked {
  /** Settings that it is asked without. */
  refused: ReadonlySet<string>
  /** The first call of the request. */
  first: boolean
  stop: AbortSignal
  /** Takes the answer as it comes. */
  follow?: EarlyAnswer | undefined
}

/**
 * The cascade (docs/spec/router.md §4, steps 5 to 12): call, gate, decide, one rung up; fail over when an upstream fails;
 * never a call that the budget does not cover.
 */
export async function cascade(
  plan: CascadePlan,
  deps: CascadeDeps,
  signal: AbortSignal,
  /** Opens the way of frames that leave before their answer is whole; undefined where the client reads no stream. */
  early?: (rung: Rung) => EarlyOut,
): Promise<CascadeResult> {
  const { route } = plan
  const { clock } = deps
  const asked = plan.inbound.facts.model.value
  const tried: Tried[] = []
  const busy: [number, number][] = []
  let next: Next = { rung: plan.start.rung, cause: 'failover' }
  let cause: Cause = 'start'
  /** Settings that rungs refused in this request, and are asked without. */
  const leftOut = new Map<number, string[]>()
  let ahead: (Asked & { rung: Rung; stop: AbortController }) | undefined

  for (;;) {
    const rung: Rung = route.ladder[next.rung]!
    if (next.cause === 'retry') {
      const waited = await sleep(next.waitMs + TIMER_SLACK_MS, signal).then(
        () => true,
        () => false,
      )
      if (!waited) return { end: { kind: 'aborted' }, tried, busy }
    }
    const made = await attempt(rung, cause)
    if ('stop' in made) return { end: spent(made.stop), tried, busy }
    const { one, out } = made
    tried.push(one)
    busy.push([one.call.startedAt, clock.monotonic()])
    const passed = one.call.kind === 'answered' && one.verdict === 'pass'
    if (passed || signal.aborted || out?.began) await dropAhead()
    if (signal.aborted || one.errorClass === 'client_abort') return { end: { kind: 'aborted' }, tried, busy }
    if (one.call.kind === 'answered' && one.verdict === 'pass') {
      return { end: { kind: 'answer', servedFrom: 'attempt', served: { ...one, call: one.call } }, tried, busy }
    }
    if (out?.began) return { end: brokenOff(one), tried, busy }
    const without = leftOut.get(rung.rung) ?? []
    if (one.call.kind === 'refused' && without.length < MOST_LEFT_OUT && tried.length < route.maxAttempts) {
      const refused = settingToLeaveOut(one, plan, refusedBy(rung))
      if (refused !== undefined) {
        leftOut.set(rung.rung, [...without, refused])
        next = { rung: rung.rung, cause: 'failover' }
        cause = 'retry'
        continue
      }
    }
    const step = afterAttempt(one, tried, progressNow(), plan)
    if ('end' in step) return { end: step.end, tried, busy }
    if (step.next.rung === null) return { end: spent(step.stop), tried, busy }
    next = step.next
    cause = step.next.cause
  }

  /** Where money ends it, what the budget says comes before what the route says. */
  function spent(stop: Stop): CascadeEnd {
    const own = stop.because === 'budget' ? route.budget.onExhausted : null
    const rests = () =>
      plan.eligible.map(index => {
        const rung = route.ladder[index]!
        return { rung, ...deps.breakers.restOf(rung.provider, plan.fingerprint(rung)) }
      })
    const end = exhausted(tried, stop, { onExhausted: own ?? route.onExhausted, asked, rests })
    if (end.kind === 'error' && stop.because === 'no_room') deps.refuseWhenFull(stop.call.of)
    return end
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
      retries: tried.filter(one => one.cause === 'retry').length - [...leftOut.values()].flat().length,
      floor: plan.start.floor,
      ceiling: plan.start.ceiling,
      maxEscalations: plan.knobs.maxEscalations,
      maxAttempts: route.maxAttempts,
    }
  }

  function refusedBy(rung: Rung): ReadonlySet<string> {
    const { refusedSettings: known } = deps
    const before = known.size > 0 ? refusedOf(known, rung, plan, clock.monotonic()) : NONE
    const now = leftOut.get(rung.rung)
    return now === undefined ? before : new Set([...before, ...now])
  }

  /** One rung: budget, call, gates, decision (steps 5 to 10). */
  async function attempt(
    rung: Rung,
    why: Cause,
  ): Promise<{ one: Tried; out?: EarlyAnswer | undefined } | { stop: Stop }> {
    const judged = judgeAnswer(rung, plan, deps, signal)
    const ahead = takeAhead(rung)
    const out = !ahead && early && mayReleaseEarly(rung, plan) ? judged.early(early(rung)) : undefined
    const asked =
      ahead ??
      askRung(rung, plan, deps, { refused: refusedBy(rung), first: tried.length === 0, stop: signal, follow: out })
    if (asked === undefined) return { stop: { because: 'upstream' } }
    const made = await asked.made
    if (!made.ok) return { stop: stoppedBy(made.refusal) }
    const { call, tokens, cost } = made
    const base = { rung, cause: why, call, sent: asked.sent, changes: asked.changes, tokens, cost }
    if (call.kind !== 'answered') {
      const verdict = call.errorClass === 'client_abort' ? ('cancelled' as const) : ('error' as const)
      return { one: { ...base, verdict, errorClass: call.errorClass as ErrorClass, gates: undefined }, out }
    }
    for (const setting of leftOut.get(rung.rung) ?? []) {
      // Before the gates, which may ask the same rung again.
      learnRefused(deps.refusedSettings, { model: rung, asker: plan, setting }, clock.monotonic())
      deps.log.info('a model refuses a setting, which is left out of its calls for an hour', {
        model: rung.model,
        setting,
      })
    }
    // It cannot be served, so no gate is paid to judge it.
    if (!isExpressible(call, plan)) {
      return { one: { ...base, verdict: 'error', errorClass: 'untranslatable', gates: undefined }, out }
    }
    const whole = await judged.whole(call, out, score => callAhead(rung, score))
    return { one: { ...base, ...whole, errorClass: whole.verdict === 'cancelled' ? leftBy(signal) : undefined }, out }
  }

  /** docs/spec/router.md §4.2: where the verdict is open and slow gates have not spoken, the rung that would be next is asked already. */
  function callAhead(rung: Rung, score: number | null): void {
    const { speculation } = plan.knobs
    if (speculation === 0 || ahead !== undefined) return
    if (!isOpen(score, plan.passChance(rung.rung), plan)) return
    const progress = progressNow()
    const next = afterGateFail({ ...progress, tried: [...progress.tried, rung.rung] })
    if (next.rung === null) return
    const stop = new AbortController()
    const above = route.ladder[next.rung]!
    const asked = askRung(above, plan, deps, {
      refused: refusedBy(above),
      first: false,
      stop: AbortSignal.any([signal, stop.signal]),
    })
    if (asked) ahead = { ...asked, rung: above, stop }
  }

  function takeAhead(rung: Rung): Asked | undefined {
    if (ahead?.rung.rung !== rung.rung) return undefined
    const taken = ahead
    ahead = undefined
    return taken
  }

  /** Ends a call that was not needed; what it cost until then was spent. */
  async function dropAhead(): Promise<void> {
    if (ahead === undefined) return
    const { stop, made, rung, sent, changes } = ahead
    ahead = undefined
    stop.abort()
    const ended = await made
    if (!ended.ok) return
    const { call, tokens, cost } = ended
    const errorClass = signal.aborted ? leftBy(signal) : 'speculation_cancelled'
    tried.push({
      rung,
      cause: 'speculation',
      call,
      sent,
      changes,
      tokens,
      cost,
      verdict: 'cancelled',
      errorClass,
      gates: undefined,
    })
    busy.push([call.startedAt, call.endedAt])
  }
}

/** Asks a rung, if the budget covers it (steps 5 and 6). Undefined where its dialect cannot express the request, which is never eligible. */
export function askRung(
  rung: Rung,
  plan: CascadePlan,
  deps: CascadeDeps,
  { refused, first, stop, follow }: HowAsked,
): Asked | undefined {
  const { config, route } = plan
  const provider = config.providers[rung.provider]!
  const body = rungBody(plan.inbound, rung, provider, route, refused)
  if (!body.ok) return undefined
  const { body: sent, changes, headers: given } = body
  const credential = plan.credential(rung)
  const { mediaBytes, documentBytes, mediaCount, n } = plan.inbound.facts
  const maxTokens = body.maxTokens ?? plan.inbound.facts.maxTokens ?? rung.maxOutputTokens
  const made = pricedCall(
    {
      model: rung,
      provider,
      url: upstreamUrl(plan.inbound, provider, rung),
      headers: key =>
        upstreamHeaders({ ...plan.inbound, headers: given }, provider, key, {
          credential,
          bytes: sent.length,
          first,
        }),
      body: sent,
      size: { mediaBytes, documentBytes, mediaCount, maxTokens, n, heldTokens: plan.heldTokens(rung) },
      shown: injectsUsage(plan.inbound, provider) ? withoutUsage : undefined,
      follow,
    },
    plan,
    { ...deps, limits: config.limits },
    stop,
  )
  return { made, sent, changes }
}

/** Parts of an answer are with the client, so nothing else can be served. */
function brokenOff({ call, rung }: Tried): CascadeEnd {
  if (call.kind === 'refused') return { kind: 'refusal', refused: call, from: rung.dialect }
  if (call.kind === 'answered')
    return {
      kind: 'error',
      error: 'gate_failed',
      message: 'the answer failed a gate after its beginning had been sent',
    }
  const message = call.kind === 'no_room' ? call.detail : 'the upstream broke off after the beginning had been sent'
  return { kind: 'error', error: 'upstream', message }
}

/** What an attempt that was not served leads to. */
function afterAttempt(
  one: Tried,
  tried: readonly Tried[],
  progress: Progress,
  plan: CascadePlan,
): { next: Next; stop: Stop } | { end: CascadeEnd } {
  const { call, rung } = one
  const { maxRetryWaitS } = plan.config.limits
  if (call.kind === 'answered') return { next: afterGateFail(progress), stop: { because: 'gates' } }
  // Another rung would find no connection either, or be billed for an answer that has no room.
  if (call.kind === 'no_room') return { next: { rung: null, because: 'no_rung' }, stop: { because: 'no_room', call } }
  if (call.kind === 'broken') {
    return { next: afterFault(progress, null, maxRetryWaitS), stop: { because: 'upstream' } }
  }
  if (call.errorClass === 'context_overflow') return { next: afterOverflow(progress), stop: { because: 'upstream' } }
  const ownKey = call.errorClass === 'auth' && plan.credential(rung) !== 'passthrough'
  if (call.failover || ownKey) {
    return { next: afterFault(progress, call.retryAfterMs ?? null, maxRetryWaitS), stop: { because: 'upstream' } }
  }
  // What only the client can put right goes back to it, unless an earlier attempt has something to serve. Of a model that
  // the client did not name, it says only that this one is not for this request.
  if (isOfRequest(one) && !isNamed(rung, plan.inbound.facts.model.value)) {
    return { next: afterRefusal(progress), stop: { because: 'upstream' } }
  }
  return { end: bestOf(tried) ?? { kind: 'refusal', refused: call, from: rung.dialect } }
}

/**
 * A score between 0 and 1, or what was learned, says whether the verdict is close. Quick gates that say only yes say nothing of what
 * slower ones will, and who asks for latency wants no time lost on it.
 */
function isOpen(
  score: number | null,
  chance: number | undefined,
  { threshold, knobs }: Pick<CascadePlan, 'threshold' | 'knobs'>,
): boolean {
  const tells = score !== null && score > 0 && score < 1 && threshold !== null
  if (tells && Math.abs(score - threshold) <= knobs.band) return true
  if (chance !== undefined) return chance >= OPEN_CHANCE.least && chance <= OPEN_CHANCE.most
  return !tells
}

/**
 * docs/spec/router.md §4.1. Frames are those of the client's dialect, and of an answer with one choice; where the route gates
 * nothing, the last rung has no rung left to ask.
 */
function mayReleaseEarly({ rung, dialect }: Rung, { inbound, gates, route }: CascadePlan): boolean {
  const { facts, dialect: own } = inbound
  if (!facts.stream || facts.n !== 1 || dialect !== own) return false
  if (gates.length === 0 && rung === route.ladder.length - 1) return true
  return route.earlyRelease && gates.every(({ onPrefix }) => onPrefix !== undefined)
}

/** Why a client is gone before its answer. */
function leftBy(signal: AbortSignal): ErrorClass {
  return ranOut(signal) ? 'timeout' : 'client_abort'
}
