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
