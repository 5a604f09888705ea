import type { Log } from '../../shared/log/log.ts'
import { sumNano, toUsd } from '../../shared/money/money.ts'
import type { CascadeLog } from './receipt.ts'

/** The line of a routed call: whose, what served it, how it ended and what it cost, and nothing of what was said. */
export function sayRouted(
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
