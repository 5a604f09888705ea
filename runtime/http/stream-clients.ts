import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'

/** Each holds a connection and memory of the process. */
const MOST_OF_TENANT = 2000
/** A stream that ends makes room. When that will be is not known. */
const AGAIN_S = 10

type StreamKind = 'run' | 'session' | 'page'

export type StreamClients = ReturnType<typeof streamClients>

/** Counts the open event streams, and bounds those of each tenant, so that connections are left for the others. */
export function streamClients(metrics: Metrics, mostOfTenant = MOST_OF_TENANT) {
  const gauge = metrics.gauge('waybill_sse_clients', 'Open event streams.')
  const open = { run: 0, session: 0, page: 0 }
  const byTenant = new Map<string, number>()
  const count = (stream: StreamKind, tenantId: string, by: 1 | -1) => {
    open[stream] += by
    gauge.set(open[stream], { stream })
    const own = (byTenant.get(tenantId) ?? 0) + by
    if (own === 0) byTenant.delete(tenantId)
    else byTenant.set(tenantId, own)
  }
  for (const stream of ['run', 'session', 'page'] as const) gauge.set(0, { stream })
  return {
    /** Throws `throttled` where a tenant has as many streams as it may have. */
    refuseBeyond(tenantId: string): void {
      if ((byTenant.get(tenantId) ?? 0) < mostOfTenant) return
      throw new ApiError(
        'throttled',
        `this tenant has ${mostOfTenant} event streams open, as many as one may have (PLATFORM_MAX_TENANT_STREAMS): end some of them, and try again`,
        { headers: { 'retry-after': String(AGAIN_S) } },
      )
    },
    async *counted<T>(stream: StreamKind, tenantId: string, frames: AsyncIterable<T>): AsyncGenerator<T> {
      count(stream, tenantId, 1)
      try {
        yield* frames
      } finally {
        count(stream, tenantId, -1)
      }
    },
  }
}

/** Where a reader of a stream stopped, as browsers say it when they connect again; undefined for a first connection. */
export function lastEventId(context: Context): number | undefined {
  const last = /^\d{1,15}$/.exec(context.req.header('last-event-id') ?? '')?.[0]
  return last === undefined ? undefined : Number(last)
}
