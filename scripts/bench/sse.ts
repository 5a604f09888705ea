import { setTimeout as wait } from 'node:timers/promises'
import { type Bench, type Figure, quantile } from './harness.ts'
import { benchRuntime, noopAgent } from './runtime/server.ts'

const SUBSCRIBERS = 1000

export const sseBench: Bench = {
  title: 'Event streams',
  about: `${SUBSCRIBERS} subscribers of one run over HTTP, each timing every event from the moment its journal entry says to its arrival; one run of ten turns, 50 ms apart, each of two steps and four events.`,
  unit: 'events/s',
  rounds: 3,
  expectations: [{ says: 'lag, 99th percentile', value: ({ figures }) => figures[0]!.value, atMost: 100 }],
  async prepare() {
    const server = await benchRuntime({ PLATFORM_MAX_CONCURRENT_RUNS: '16' })
    await noopAgent(server)
    let lags: number[] = []
    return {
      variants: [
        {
          name: `${SUBSCRIBERS} subscribers`,
          async round() {
            const prompt = '/call wait_signal {"name":"go"}\n/call*10 wait {"seconds":0.05}'
            const made = await server.call('POST', '/v1/runs', { agentName: 'noop', input: { prompt } })
            const { id } = JSON.parse(made.text) as { id: string }
            const seen: number[] = []
            let there = 0
            let begun = false
            const streams = Array.from({ length: SUBSCRIBERS }, () => {
              let first = true
              return server.call('GET', `/v1/runs/${id}/events`, undefined, text => {
                const now = Date.now()
                if (first) there++
                first = false
                if (!begun) return
                for (const [, at] of text.matchAll(/"createdAt":"([^"]+)"\}/g)) seen.push(now - Date.parse(at ?? ''))
              })
            })
            // Only when all have read what was there before does the run go on.
            while (there < SUBSCRIBERS) await wait(5)
            await wait(500)
            begun = true
            const started = performance.now()
            await server.call('POST', `/v1/runs/${id}/signals/go`, {})
            await Promise.all(streams)
            lags = lags.concat(seen)
            return (seen.length * 1000) / (performance.now() - started)
          },
        },
      ],
      async figures(): Promise<Figure[]> {
        lags.sort((a, b) => a - b)
        return [
          { name: 'lag, 99th percentile', value: quantile(lags, 0.99), unit: 'ms' },
          { name: 'lag, median', value: quantile(lags, 0.5), unit: 'ms' },
          { name: 'events timed', value: lags.length, unit: 'events' },
          { name: 'resident memory', value: await server.resident(), unit: 'MB' },
        ]
      },
      close: server.close,
    }
  },
}
