import type { DialectName } from '../../shared/dialects/candidate.ts'
import { heldByAnswer } from '../../shared/dialects/responses/held.ts'
import { isPause } from '../../shared/dialects/stop-reasons.ts'
import type { Log } from '../../shared/log/log.ts'
import { formatUsd, sumNano } from '../../shared/money/money.ts'
import { inputTokens } from '../../shared/prices/price.ts'
import type { Clock } from '../../shared/time/clock.ts'
import {
  errorStatusOf,
  type RouterErrorCase,
  retryHeaders,
  SHOULD_RETRY,
} from '../../shared/wire/router/error-cases.ts'
import { requestHeaders, responseHeaders } from '../../shared/wire/router/headers.ts'
import type { DroppedRung, Policy } from '../../shared/wire/router/trace.ts'
import type { AnswerCache } from '../cache/answer-cache.ts'
import { cacheKey } from '../cache/answer-cache.ts'
import type { Rung } from '../config/routing-config.ts'
import type { Lesson } from '../learning/experience.ts'
import { decidedOn, type Hashing } from '../receipt/request-part.ts'
import type { Unhashed } from '../receipt/unhashed.ts'
import type { Shadows } from '../shadow/shadows.ts'
import { headerValue } from '../upstream/headers.ts'
import { type HeaderList, TransportError } from '../upstream/transport.ts'
import { logRoutedCall } from './call-log.ts'
import { type AnsweredCall, ranOut } from './call-upstream.ts'
import { type CascadeResult, cascade } from './cascade.ts'
import { type CascadeEnd, isBilled } from './cascade-end.ts'
import type { CascadeDeps, CascadePlan } from './cascade-plan.ts'
import { type Answer, type CascadeOutcome, commitResponse, earlyFrames, type Flowing } from './commit-response.ts'
import type { EarlyOut } from './early-answer.ts'
import type { Holding, SharedHeld } from './held-responses.ts'
import { type PlanDeps, type PlanInput, planCascade } from './plan.ts'
import { type CascadeLog, cascadeRecord, type Tried } from './receipt.ts'
import { type RenderOptions, renderAnswer, renderRefusal, streamHeaders } from './render-answer.ts'
import type { Sessions } from './sessions.ts'
import { askTop } from './shadow-call.ts'
import type { Inbound } from './upstream-request.ts'

export interface EnforceDeps extends PlanDeps, Omit<CascadeDeps, 'readKey' | 'breakers'> {
  /** Gets one line for each call. */
  callLog: Log
  clock: Clock
  hashing: Hashing
  sessions: Sessions
  held: SharedHeld
  outHeaders: boolean
  shadows: Shadows
  answers: AnswerCache<Tried & { call: AnsweredCall }>
  /** Takes back what was called wrong in another process, before an answer is given again. */
  hearReports: () => Promise<void>
  /** Hears of rungs that could not take a request. */
  dropped: (route: number, dropped: readonly DroppedRung[] | undefined) => void
  /** Whether calls are traced to a collector. */
  isTraced: boolean
  /** Takes the making of the receipt; resolves when the response may end. */
  record: (make: () => Unhashed) => Promise<void>
}

export type EnforceInput = Omit<PlanInput, 'sessionId' | 'session' | 'features' | 'holding' | 'now'> & {
  arrivedAt: Date
  arrived: number
}

/** Serves one request by the cascade and leaves its receipt. `stop` is aborted by the host when the client is gone, and here when the time is over. */
export async function enforce(input: EnforceInput, deps: EnforceDeps, stop: AbortController): Promise<Answer> {
  const { traceId, inbound, route, profile } = input
  const { config, clock } = deps
  const { signal } = stop
  let committed = false
  const timer = setTimeout(
    () => stop.abort(new TransportError('the request took too long', { timeout: 'total' })),
    config.limits.totalMs,
  )
  const own: HeaderList = deps.outHeaders
    ? [
        [responseHeaders.traceId, traceId],
        [responseHeaders.mode, profile],
      ]
    : []

  const firstFrames = Promise.withResolvers<Flowing>()
  let sent = 0
  const end = (async (): Promise<CascadeOutcome> => {
    try {
      return await decide()
    } finally {
      clearTimeout(timer)
    }
  })()

  async function decide(): Promise<CascadeOutcome> {
    const finding = inbound.held && deps.held.find(input.tenantId, inbound.held)
    const holding = finding instanceof Promise ? await finding : finding
    const request = requestOf(inbound, holding, deps.hashing)
    const { session_id: sessionId, features } = request
    const session = deps.sessions(input.tenantId, route.fingerprint, sessionId)
    const planned = planCascade(
      { ...input, holding, sessionId, session: session.find(), features, now: clock.monotonic() },
      deps,
    )
    deps.dropped(route.ix, planned.policy.dropped)
    if (!planned.ok) {
      const end = { kind: 'error', error: planned.error, message: planned.message } as const
      await leave(request, { end, tried: [], busy: [] }, planned.policy)
      return { ...end, headers: own }
    }
    const calling = { ...deps, readKey: (name: string) => deps.env[name] }
    const key = route.cacheTtlS > 0 ? cacheKey({ ...inbound, ...keyParts() }, deps.hashing.sha256) : undefined
    if (key !== undefined) await deps.hearReports()
    const kept = key === undefined ? undefined : deps.answers.find(key, route.cacheTtlS, traceId)
    const result: CascadeResult = kept
      ? { end: { kind: 'answer', servedFrom: 'cache', served: kept }, tried: [], busy: [] }
      : await cascade(planned.plan, calling, signal, releasing)
    if (key !== undefined) keepAnswer(deps.answers, key, traceId, result)
    const options: RenderOptions = {
      dialect: inbound.dialect,
      stream: inbound.facts.stream,
      includeUsage: inbound.facts.includeUsage,
      traceId,
      now: clock.now(),
    }
    const made = toOutcome(result, options)
    if (result.end.kind === 'answer' && !kept) {
      const turn = { now: clock.monotonic(), bodyBytes: inbound.body.length, messages: features.message_count }
      const { served } = result.end
      session.served(
        route.stayForCache ? { served, tried: result.tried, turn, insteadOf: planned.insteadOf } : { served },
      )
      remember(served, sessionId, input.tenantId, deps.held)
    }
    sampled(planned.plan, result, calling)
    const { algorithm, discount } = config.learning
    if (algorithm !== 'off') {
      deps.learner.learn(input.tenantId, route.fingerprint, features, lessonsOf(result), discount)
    }
    await leave(
      request,
      made.result,
      planned.policy,
      made.outcome.kind === 'served' ? made.outcome.served.status : undefined,
    )
    return made.outcome
  }

  function keyParts() {
    return { tenantId: input.tenantId, configHash: config.configHash, routeIx: route.ix, profile }
  }

  /** Measures what the top rung would have taken, for a share of what was served as it should be. */
  function sampled(plan: CascadePlan, { end }: CascadeResult, calling: CascadeDeps): void {
    const top = route.ladder.at(-1)!
    if (end.kind !== 'answer' || end.servedFrom !== 'attempt' || top.price === null) return
    if (inbound.held !== undefined && (inbound.held.appends || !plan.eligible.includes(top.rung))) return
    const { rung, call, tokens } = end.served
    if (tokens === null || call.usageSource !== 'provider') return
    deps.shadows.consider({
      tenantId: input.tenantId,
      traceId,
      route,
      served: tokens,
      top: top.price,
      isTop: rung.rung === top.rung,
      askTop: signal => askTop(plan, calling, signal),
    })
  }

  /** The way out for an answer that begins to flow; the head goes with its first frame, and what it costs is not known then. */
  function releasing(rung: Rung): EarlyOut {
    const flow = earlyFrames()
    return {
      begin({ status, headers }) {
        committed = true
        firstFrames.resolve({
          kind: 'flowing',
          status,
          headers: [...streamHeaders(headers), ...own, ...(deps.outHeaders ? rungHeaders(rung) : [])],
          flow,
          end,
        })
      },
      send(frame) {
        sent += 1
        flow.send(frame)
      },
    }
  }

  function toOutcome(
    result: CascadeResult,
    options: RenderOptions,
  ): { outcome: CascadeOutcome; result: CascadeResult } {
    const cost = deps.outHeaders ? costHeader(result) : []
    const error = (
      name: RouterErrorCase,
      message: string,
      headers: HeaderList = [],
    ): { outcome: CascadeOutcome; result: CascadeResult } => ({
      outcome: {
        kind: 'error',
        error: name,
        message,
        headers: [...own, ...cost, ...headers, ...notAgain(result, name)],
      },
      result: { ...result, end: { kind: 'error', error: name, message } },
    })
    const { end } = result
    if (end.kind === 'aborted' && ranOut(signal)) {
      return error('timeout_total', `no answer within ${config.limits.totalMs} ms, the limit of this router`)
    }
    if (end.kind === 'aborted') {
      return { outcome: { kind: 'error', error: 'upstream', message: 'the client went away', headers: own }, result }
    }
    if (end.kind === 'error') {
      const wait: HeaderList = end.retryAfterS === undefined ? [] : [['retry-after', String(end.retryAfterS)]]
      return error(end.error, end.message, wait)
    }
    if (end.kind === 'refusal') {
      const said = renderRefusal(end.refused, end.from, options)
      const once = notAgain(result)
      const headers =
        once.length > 0 ? said.headers.filter(([name]) => name.toLowerCase() !== SHOULD_RETRY) : said.headers
      const served = { ...said, headers }
      return { outcome: { kind: 'served', served, isAnswer: false, headers: [...own, ...cost, ...once] }, result }
    }
    const whole = renderAnswer(end.served.call, options)
    const served = whole && { ...whole, pieces: whole.pieces.slice(sent) }
    if (!served) return error('inexpressible', 'the answer holds what this dialect cannot express')
    const headers = deps.outHeaders ? [...own, ...servedHeaders(end), ...cost] : own
    return { outcome: { kind: 'served', served, isAnswer: true, headers }, result }
  }

  async function leave(
    request: CascadeLog['request'],
    result: CascadeResult,
    policy: Policy,
    status?: number,
  ): Promise<void> {
    const log: CascadeLog = {
      ...result,
      traceId,
      tenantId: input.tenantId,
      arrivedAt: input.arrivedAt,
      routeIx: route.ix,
      topRung: route.ladder.at(-1)!,
      ratios: () => deps.shadows.ratios(input.tenantId, route.fingerprint),
      inbound,
      request,
      policy,
      isTraced: deps.isTraced,
      storeReasons: config.store.storeReasons,
      end: {
        ...recorded(result.end, inbound.dialect),
        ...(status !== undefined && { status }),
        ...(committed && afterHead(result.end)),
      },
      times: { arrived: input.arrived, done: clock.monotonic() },
    }
    logRoutedCall(deps.callLog, log)
    await deps.record(() => cascadeRecord(log))
  }

  const { keepaliveAfterMs: afterMs, keepaliveEveryMs: everyMs } = config.stream
  return commitResponse(inbound.facts.stream ? Promise.race([firstFrames.promise, end]) : end, {
    dialect: inbound.dialect,
    stream: inbound.facts.stream,
    traceId,
    keepAlive: route.keepalive === 'off' ? undefined : { afterMs, everyMs },
    earlyHeaders: own,
    lateHeaders: headerValue(inbound.headers, requestHeaders.lateHeaders) === 'true',
    committed: () => {
      committed = true
    },
    gone: () => stop.abort(),
  })
}

/** Keeps in mind who made a response, for the requests that go on with it. */
function remember(
  { rung, call, tokens }: Tried & { call: AnsweredCall },
  sessionId: string,
  tenantId: string,
  held: EnforceDeps['held'],
): void {
  if (rung.dialect !== 'responses') return
  const { provider, model } = rung
  const used = tokens === null ? 0 : inputTokens(tokens) + tokens.output
  held.keep(tenantId, heldByAnswer(call.json), { provider, model, sessionId, tokens: used })
}

/** Keeps an answer for the same question, when gates said of it that it is good. */
function keepAnswer(answers: EnforceDeps['answers'], key: string, traceId: string, { end }: CascadeResult): void {
  if (end.kind !== 'answer' || end.servedFrom !== 'attempt') return
  const { gates, call } = end.served
  if (gates?.gate !== 'pass' || isPause(call.finish)) return
  const frames = call.frames?.reduce((sum, frame) => sum + frame.length, 0) ?? 0
  answers.keep(key, traceId, end.served, call.json.length + frames)
}

/** A refusal behind an attempt that is billed is not to be sent again (decision 097); the router's own errors that last say so themselves. */
function notAgain({ tried }: CascadeResult, error?: RouterErrorCase): HeaderList {
  const isSaid = error !== undefined && SHOULD_RETRY in retryHeaders(error)
  return isSaid || !tried.some(isBilled) ? [] : [[SHOULD_RETRY, 'false']]
}

/** What all attempts cost together, where each has a price. */
function costHeader({ tried }: CascadeResult): HeaderList {
  const costs = tried.map(({ cost, gates }) => (cost === null ? null : cost + (gates?.cost ?? 0)))
  if (costs.includes(null)) return []
  return [[responseHeaders.costUsd, formatUsd(sumNano(costs.map(cost => cost ?? 0)))]]
}

function servedHeaders({ served }: Extract<CascadeEnd, { kind: 'answer' }>): HeaderList {
  const failed = (served.gates?.results ?? []).filter(({ verdict }) => verdict === 'fail').map(({ gate_id }) => gate_id)
  return [
    ...rungHeaders(served.rung),
    ...(failed.length === 0 ? [] : ([[responseHeaders.gates, `failed: ${failed.join(', ')}`]] as HeaderList)),
  ]
}

function rungHeaders({ rung, model }: Rung): HeaderList {
  return [
    [responseHeaders.servedRung, String(rung)],
    [responseHeaders.servedModel, model],
  ]
}

/** What the decision reads of a request; one that goes on with a response is of the session of that response, unless it names its own. */
function requestOf(inbound: Inbound, holding: Holding | undefined, hashing: Hashing): CascadeLog['request'] {
  const decided = decidedOn(inbound, hashing)
  const held = holding?.holders[0]?.sessionId
  if (held === undefined || headerValue(inbound.headers, requestHeaders.session)) return decided
  return { ...decided, session_id: held }
}

/** What the attempts of a request teach about their rungs: the answers that were judged, at their whole cost. */
function lessonsOf({ tried }: CascadeResult): Lesson[] {
  return tried.flatMap(({ rung, call, verdict, cost, tokens, gates }) =>
    call.kind === 'answered' && (verdict === 'pass' || verdict === 'fail') && cost !== null && tokens !== null
      ? [{ rung: rung.rung, passed: verdict === 'pass', cost: cost + (gates?.cost ?? 0), tokens }]
      : [],
  )
}

/** What a head that is out changes: its status was 200, and what is no answer ended the stream before its end. */
function afterHead({ kind }: CascadeEnd): Partial<CascadeLog['end']> {
  if (kind === 'aborted') return { truncated: true }
  return { status: 200, ...(kind !== 'answer' && { truncated: true }) }
}

/** How the receipt names the end, with the status that the client got. */
function recorded(end: CascadeEnd, dialect: DialectName): CascadeLog['end'] {
  switch (end.kind) {
    case 'answer':
      return { servedFrom: end.servedFrom, served: end.served, status: end.served.call.status }
    case 'refusal':
      return { servedFrom: 'upstream_error', served: undefined, status: end.refused.status }
    case 'aborted':
      return { servedFrom: 'aborted', served: undefined, status: 499 }
    case 'error':
      return { servedFrom: 'error', served: undefined, status: errorStatusOf(end.error, dialect === 'messages') }
  }
}
