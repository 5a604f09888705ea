import type { Change } from '../../shared/dialects/adapt/draft.ts'
import { NO_TOKENS, type Tokens } from '../../shared/dialects/candidate.ts'
import { type NanoUsd, sumNano, toUsd } from '../../shared/money/money.ts'
import { attemptCost } from '../../shared/prices/price.ts'
import type { Attempt, Cause, ErrorClass, Final, GateResult, Policy } from '../../shared/wire/router/trace.ts'
import type { Rung } from '../config/routing-config.ts'
import { promptOf, type RequestPart } from '../receipt/request-part.ts'
import type { CallContext, Unhashed } from '../receipt/unhashed.ts'
import { calibratedCost, type Ratios } from '../shadow/shadow-sums.ts'
import { headerValue } from '../upstream/headers.ts'
import type { CallResult } from './call-upstream.ts'
import type { Inbound } from './upstream-request.ts'

/** One try as the cascade made it. */
export interface Tried {
  rung: Rung
  cause: Cause
  call: CallResult
  /** What went upstream. */
  sent: Uint8Array
  /** What of the request was changed for the model of the rung. */
  changes: readonly Change[]
  tokens: Tokens | null
  /** null when the rung has no price. */
  cost: NanoUsd | null
  verdict: Attempt['verdict']
  errorClass: ErrorClass | undefined
  /** A gate that must pass did not, so this answer is not served, whatever else there is. */
  withheld?: boolean
  /** Undefined when no gate ran. */
  gates: { results: readonly GateResult[]; gate: Attempt['gate']; score: number | null; cost: NanoUsd } | undefined
}

export interface CascadeLog {
  traceId: string
  tenantId: string
  arrivedAt: Date
  routeIx: number
  topRung: Rung
  /** What the top rung takes for a served token, once it was measured. */
  ratios: () => Ratios | undefined
  inbound: Inbound
  request: Pick<RequestPart, 'features' | 'session_id'>
  policy: Policy
  /** Whether calls are traced to a collector. */
  isTraced: boolean
  /** Whether reasons of gates are kept. */
  storeReasons: boolean
  tried: readonly Tried[]
  end: { servedFrom: Final['served_from']; served: Tried | undefined; status: number; truncated?: boolean }
  /** Milliseconds on the clock that never jumps: the arrival, and the last byte handed out. */
  times: { arrived: number; done: number }
  /** Stretches in which an upstream call or a gate was in flight. */
  busy: readonly (readonly [start: number, end: number])[]
}

/** The receipt of a cascade (docs/spec/router.md §1.1), with what is still to be hashed for it. */
export function cascadeRecord(log: CascadeLog): Unhashed {
  const { tried, end, inbound } = log
  const { body, facts } = inbound
  const last = made(end) ?? tried.at(-1)
  const context = log.isTraced ? contextOf(log) : undefined
  return { record: recordOf(log), body, prompt: promptOf(facts), sent: last?.sent ?? null, context }
}

const contextOf = ({ inbound, tried, times }: CascadeLog): CallContext => ({
  traceparent: headerValue(inbound.headers, 'traceparent'),
  starts: tried.map(({ call }) => call.startedAt - times.arrived),
})

function recordOf(log: CascadeLog): Unhashed['record'] {
  const { tried, inbound } = log
  const { session_id, features } = log.request
  // Members of all that is sealed are made in the order of their names: then the engine writes the canonical form.
  return {
    attempts: tried.map(one => attempt(one, log.storeReasons)),
    final: final(log),
    mode: 'enforce',
    policy: log.policy,
    request: { api: inbound.dialect, features },
    route_ix: log.routeIx,
    session_id,
    tenant_id: log.tenantId,
    trace_id: log.traceId,
    ts: log.arrivedAt.toISOString(),
    v: 1,
  }
}

function attempt(
  { rung, cause, call, changes, tokens, cost, verdict, errorClass, gates }: Tried,
  storeReasons: boolean,
): Attempt {
  return {
    adapted: changes.length > 0 ? adaptedMembers(changes) : undefined,
    cause,
    cost: cost === null ? null : toUsd(cost),
    error_class: errorClass,
    finish: call.finish?.slice(0, 512) ?? null,
    gate: gates?.gate ?? (call.kind === 'answered' ? 'skipped' : 'error'),
    gates: gates ? gates.results.map(result => (storeReasons ? result : withoutReason(result))) : [],
    latency_ms: ms(call.endedAt - call.startedAt),
    model: rung.model,
    provider: rung.provider,
    rung: rung.rung,
    score: gates?.score ?? null,
    status: call.status,
    tokens: tokens ?? NO_TOKENS,
    ttfb_ms: call.firstByteAt === undefined ? null : ms(call.firstByteAt - call.startedAt),
    usage_source: call.usageSource,
    verdict,
  }
}

/** Each change once, wherever it was made in a list, and no more than a record has room for. */
function adaptedMembers(changes: readonly Change[]): NonNullable<Attempt['adapted']> {
  const seen = new Map<string, Change>()
  for (const change of changes) {
    const path = change.path.replace(/\[\d+\]/g, '[]').slice(0, 128)
    const key = `${path} ${change.why}`
    if (!seen.has(key) && seen.size < MOST_ADAPTED) seen.set(key, { ...change, path })
  }
  return [...seen.values()]
}
const MOST_ADAPTED = 64

function withoutReason({ reason: _, ...result }: GateResult): GateResult {
  return result
}

function final({ inbound, tried, end, topRung, ratios, times, busy }: CascadeLog): Final {
  const gateCost = sumNano(tried.map(({ gates }) => gates?.cost ?? 0))
  const costs = tried.map(({ cost }) => cost)
  const total = costs.includes(null) ? null : sumNano([...costs.map(cost => cost ?? 0), gateCost])
  const served = made(end)
  // What was kept cost nothing and saves nothing: counting it would inflate the savings.
  const baseline = baselineCost(served, topRung)
  const calibrated = calibratedBaseline(served, topRung, ratios())
  const candidate = end.served?.call.kind === 'answered' ? end.served.call.candidate : undefined
  const requestId = (served ?? tried.at(-1))?.call.upstreamRequestId
  const clientId = headerValue(inbound.headers, 'x-request-id')
  const count = (...causes: Cause[]) => tried.filter(({ cause }) => causes.includes(cause)).length
  return {
    baseline_calibrated_usd: calibrated === undefined ? undefined : toUsd(calibrated),
    baseline_same_token_usd: baseline === null ? null : toUsd(baseline),
    client_request_id: clientId?.slice(0, 512) || undefined,
    escalations: count('escalation', 'overflow'),
    failovers: count('failover', 'retry'),
    gate_cost_usd: toUsd(gateCost),
    overhead_ms: ms(times.done - times.arrived - union(busy)),
    response_id: candidate?.id?.slice(0, 512) || undefined,
    savings_calibrated_usd: calibrated === undefined || total === null ? undefined : toUsd(calibrated - total),
    savings_usd: baseline === null || total === null ? null : toUsd(baseline - total),
    served_from: end.servedFrom,
    served_model: end.served?.rung.model ?? null,
    served_rung: end.served?.rung.rung ?? -1,
    status: end.status,
    total_cost_usd: total === null ? null : toUsd(total),
    truncated: end.truncated,
    upstream_request_id: requestId?.slice(0, 512) || undefined,
    wall_ms: ms(times.done - times.arrived),
  }
}

/** The attempt of this request that was served; an answer that was kept is of another. */
function made({ servedFrom, served }: CascadeLog['end']): Tried | undefined {
  return servedFrom === 'cache' ? undefined : served
}

/** The served tokens at the top rung's prices, class by class; nothing served would have cost nothing. */
function baselineCost(served: Tried | undefined, top: Rung): NanoUsd | null {
  if (served === undefined) return 0
  return top.price === null || served.tokens === null
    ? null
    : attemptCost(top.price, served.tokens, { rates: served.call.billing.rates })
}

function calibratedBaseline(served: Tried | undefined, top: Rung, ratios: Ratios | undefined): NanoUsd | undefined {
  if (ratios === undefined) return undefined
  if (served === undefined || served.tokens === null || top.price === null) return undefined
  return calibratedCost(top.price, served.tokens, ratios)
}

/** The total length of intervals that may overlap. */
export function union(intervals: readonly (readonly [number, number])[]): number {
  let sum = 0
  let reached = Number.NEGATIVE_INFINITY
  for (const [start, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, end - Math.max(start, reached))
    reached = Math.max(reached, end)
  }
  return sum
}

function ms(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000)
}
