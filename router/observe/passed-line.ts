import type { Log } from '../../shared/log/log.ts'
import type { ObservedEnd } from './record.ts'

export interface PassedCall {
  traceId: string
  tenantId: string
  routeIx: number | null
  method: string
  target: string
  /** null where the upstream gave none. */
  status: number | null
  how: ObservedEnd
  ms: number
}

/** The line of a call that was passed on as it came: whose, where to and how it ended, and nothing of what was said. */
export function sayPassed(log: Log, { traceId, tenantId, routeIx, method, target, status, how, ms }: PassedCall): void {
  log.debug('a call was passed on', {
    ...{ trace_id: traceId, tenant_id: tenantId, route: routeIx, method, path: target.split('?', 1)[0] },
    ...{ status, ended: how, ms: Math.round(ms * 1000) / 1000 },
  })
}
