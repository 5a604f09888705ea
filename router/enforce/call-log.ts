import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { sumNano, toUsd } from '../../shared/money/money.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { DroppedRung } from '../../shared/wire/router/trace.ts'
import type { Model } from '../config/model.ts'
import type { BrokenCall, NoRoomCall, RefusedCall } from './call-upstream.ts'
import type { CascadeLog } from './receipt.ts'

/** The line of a routed call: whose, what served it, how it ended and what it cost, and nothing of what was said. */
export function logRoutedCall(
  log: Log,
  { traceId, tenantId, routeIx, tried, end, times, policy, request }: CascadeLog,
): void {
  const costs = tried.map(({ cost, gates }) => (cost === null ? null : cost + (gates?.cost ?? 0)))
  const { served, servedFrom, status } = end
  log.info('a call was routed', {
    trace_id: traceId,
    tenant_id: tenantId,
    session_id: request.session_id,
    route: routeIx,
    profile: policy.mode_profile,
    start: policy.start_rung,
    attempts: tried.length,
    rung: served?.rung.rung ?? null,
    model: served?.rung.model ?? null,
    served_from: servedFrom,
    status,
    ms: Math.round((times.done - times.arrived) * 1000) / 1000,
    cost_usd: costs.includes(null) ? null : toUsd(sumNano(costs.map(cost => cost ?? 0))),
  })
}

/**
 * Says that an upstream fails or refuses: what its operator should know (limits, keys, outages) as a warning once a minute for each model, what
 * is about one request as a line of debugging.
 */
export function failureLines(
  log: Log,
  clock: Clock,
): (model: Model, call: RefusedCall | BrokenCall | NoRoomCall) => void {
  const once = rateLimitedLog(clock)
  return ({ provider, model }, call) => {
    const { errorClass: error_class } = call
    if (call.kind !== 'refused') {
      // A client that left is no fault, and of an open breaker there is a line of its own.
      if (error_class === 'client_abort' || error_class === 'breaker_open') return
      const fields = { provider, model, error_class, detail: call.detail }
      once(`${model} ${error_class}`, () => log.warn(`an upstream call failed; ${REPEATS_OMITTED}`, fields))
      return
    }
    const { status, upstreamRequestId } = call
    const fields = { provider, model, status, error_class, upstream_request_id: upstreamRequestId }
    if (error_class === 'upstream_4xx' || error_class === 'context_overflow' || error_class === 'thinking_mismatch') {
      log.debug('an upstream refused a request', fields)
      return
    }
    once(`${model} ${error_class}`, () => log.warn(`an upstream refuses calls; ${REPEATS_OMITTED}`, fields))
  }
}

/** Reasons remembered at once; a caller that sends a new one with each request gets the oldest reported again. */
const MOST_KNOWN = 1000

/** Counts rungs that could not take a request, and says each reason once: a ladder whose rung is never asked saves nothing. */
export function droppedRungs(metrics: Metrics, log: Log) {
  const counter = metrics.counter('router_rungs_dropped_total', 'Rungs that could not take a request, by reason.')
  const said = new Set<string>()
  return (route: number, dropped: readonly DroppedRung[] = []): void => {
    for (const { rung, model, reason, because } of dropped) {
      counter.add(1, { route, model, reason })
      const key = `${route} ${model} ${reason === 'max_input_tokens' ? '' : because} ${reason}`
      if (said.has(key)) continue
      said.add(key)
      if (said.size > MOST_KNOWN) said.delete(said.values().next().value!)
      log.info('a rung is left out, because it cannot take such a request', { route, rung, model, reason, because })
    }
  }
}
