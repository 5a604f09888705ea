import type { Context } from 'hono'
import type { Metrics } from '../../shared/metrics/metrics.ts'

export type StreamClients = ReturnType<typeof streamClients>

/** Counts who is on the event streams at this moment. */
export function streamClients(metrics: Metrics) {
  const gauge = metrics.gauge('waybill_sse_clients', 'Open event streams.')
  const open = { run: 0, session: 0 }
  const count = (stream: keyof typeof open, by: number) => {
    open[stream] += by
    gauge.set(open[stream], { stream })
  }
  count('run', 0)
  count('session', 0)
  return {
    async *counted<T>(stream: keyof typeof open, frames: AsyncIterable<T>): AsyncGenerator<T> {
      count(stream, 1)
      try {
        yield* frames
      } finally {
        count(stream, -1)
      }
    },
  }
}

/** Where a reader of a stream stopped, as browsers say it when they connect again; undefined for a first connection. */
export function lastEventId(context: Context): number | undefined {
  const last = /^\d{1,15}$/.exec(context.req.header('last-event-id') ?? '')?.[0]
  return last === undefined ? undefined : Number(last)
}
