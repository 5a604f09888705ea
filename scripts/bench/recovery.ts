import type { Bench, Figure } from './harness.ts'
import { type BenchRuntime, benchRuntime, noopAgent } from './runtime/server.ts'

const RUNS = 1000

export const recoveryBench: Bench = {
  title: 'Recovery',
  about: `${RUNS} runs, each in the middle of its steps, when the process is killed; then the time from the start of the next process, which finds leases that have not ended, until the last of them has a new step, and until all have succeeded.`,
  unit: 'runs/s',
  rounds: 3,
  expectations: [
    { says: 'seconds until all are resumed', value: ({ variants }) => RUNS / variants[0]!.median, atMost: 5 },
    { says: 'runs that did not succeed', value: ({ figures }) => figures[0]!.value, atMost: 0 },
  ],
  async prepare() {
    const server = await benchRuntime({ PLATFORM_MAX_CONCURRENT_RUNS: String(RUNS) })
    await noopAgent(server)
    let unfinished = 0
    return {
      variants: [
        {
          name: 'all resumed and ended',
          async round() {
            const ids = await interrupted(server)
            const started = performance.now()
            await server.again()
            await Promise.all(
              ids.map(id => server.call('GET', `/v1/runs/${id}/events?from_seq=1000`, undefined, () => {})),
            )
            const took = performance.now() - started
            for (const id of ids) {
              const run = JSON.parse((await server.call('GET', `/v1/runs/${id}?fields=summary`)).text) as {
                status: string
              }
              if (run.status !== 'succeeded') unfinished++
            }
            return (ids.length * 1000) / took
          },
        },
      ],
      figures: async (): Promise<Figure[]> => [{ name: 'runs that did not succeed', value: unfinished, unit: 'runs' }],
      close: server.close,
    }
  },
}

/** Starts the runs, lets each come to its second turn, and kills the process under them. */
async function interrupted(server: BenchRuntime): Promise<string[]> {
  const ids: string[] = []
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      while (ids.length < RUNS) {
        const place = ids.push('') - 1
        // The pause in the middle outlasts the start of the others.
        const prompt = '/call wait {"seconds":0}\n/call wait {"seconds":0.9}\n/call wait {"seconds":0}'
        const made = await server.call('POST', '/v1/runs', { agentName: 'noop', input: { prompt } })
        ids[place] = (JSON.parse(made.text) as { id: string }).id
      }
    }),
  )
  await server.kill()
  return ids
}
