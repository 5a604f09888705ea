import type { Bench, Figure } from './harness.ts'
import { benchRuntime, noopAgent } from './runtime/server.ts'

const SCHEDULES = 10_000
const MINUTE_MS = 60_000
const WITHIN_S = 1

export const scheduleLagBench: Bench = {
  title: 'Schedules',
  about: `${SCHEDULES} schedules of every minute, their seconds spread over it, in the published runtime in its own process: how long after its window each run is there, by the service's own metric, while the runs are executed as well.`,
  unit: 'fires/s',
  rounds: 1,
  expectations: [
    {
      says: '% of the runs that are there within a second of their window',
      value: ({ figures }) => figures[0]!.value,
      atLeast: 99,
    },
    { says: 'windows without a run', value: ({ figures }) => figures[2]!.value, atMost: 0 },
  ],
  async prepare() {
    const server = await benchRuntime({ PLATFORM_MAX_CONCURRENT_RUNS: '64' })
    await noopAgent(server)
    let made = 0
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        while (made < SCHEDULES) {
          const cronExpr = `${made++ % 60} * * * * *`
          const { status, text } = await server.call('POST', '/v1/schedules', { agentName: 'noop', cronExpr })
          if (status !== 201) throw new Error(text)
        }
      }),
    )
    let before = await lags(server)
    let counted = before
    return {
      variants: [
        {
          name: `${SCHEDULES} windows of a minute`,
          async round() {
            before = await lags(server)
            const started = performance.now()
            await new Promise(resolve => setTimeout(resolve, MINUTE_MS))
            counted = await lags(server)
            return ((counted.count - before.count) * 1000) / (performance.now() - started)
          },
        },
      ],
      async figures(): Promise<Figure[]> {
        const fired = counted.count - before.count
        const soon = counted.soon - before.soon
        return [
          { name: `runs that are there within ${WITHIN_S} s of their window`, value: (soon * 100) / fired, unit: '%' },
          { name: 'lag, mean', value: ((counted.sum - before.sum) / fired) * 1000, unit: 'ms' },
          // A minute that begins within a second may end just before the last windows of it are counted.
          {
            name: 'windows without a run',
            value: Math.max(0, SCHEDULES - fired - SCHEDULES / 60),
            unit: 'windows',
            exact: true,
          },
          { name: 'resident memory', value: await server.resident(), unit: 'MB' },
        ]
      },
      close: server.close,
    }
  },
}

/** What the service says of its own lag: how many fires, how many of them within the bound, and seconds in all. */
async function lags({ call }: { call: (method: string, path: string) => Promise<{ text: string }> }) {
  const { text } = await call('GET', '/metrics')
  const read = (line: string) =>
    Number(new RegExp(`^waybill_schedule_lag_seconds_${line} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  return { count: read('count'), sum: read('sum'), soon: read(`bucket\\{le="${WITHIN_S}"\\}`) }
}
