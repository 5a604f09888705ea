import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import { type Bench, type Figure, type Measured, ratioOf } from './harness.ts'
import { dbosEngine } from './peers/dbos.ts'
import type { Engine } from './peers/engine.ts'
import { restateEngine } from './peers/restate.ts'
import { type BenchRuntime, benchRuntime, noopAgent, noopRun } from './runtime/server.ts'

const crowd = '50 clients'
const alone = '1 client'
/** Ten turns, each a model call and a tool, and the turn that ends the run. */
const RUN_STEPS = 21

export const stepsBench: Bench = {
  title: 'Steps',
  about:
    'No-op steps from the POST that starts a run to the end of its event stream, over HTTP against the published runtime in its own process: WAL file, every step’s intent on the disk before it is executed. A turn is two steps, a simulated model call and a tool that returns at once.',
  unit: 'steps/s',
  rounds: 5,
  expectations: [
    { says: '50 clients', value: ({ variants }) => variants[0]!.median, atLeast: 2000 },
    { says: 'milliseconds for a step, 1 client', value: ({ variants }) => 1000 / variants[1]!.median, atMost: 2.5 },
    { says: 'step 1,000 over step 1', value: ({ figures }) => figures[0]!.value, atMost: 1.1 },
    { says: 'memory under load', value: ({ figures }) => figures[1]!.value, atMost: 150 },
  ],
  peers:
    'The peers run a workflow of as many no-op steps for each call that waits for its end, with their own defaults, each with its server, its store on a disk and its workers in processes of their own.',
  async prepare({ peers }) {
    const engines = peers ? await others() : []
    const server = await benchRuntime({ PLATFORM_MAX_CONCURRENT_RUNS: '64' })
    await noopAgent(server)
    let largest = 0
    const peerRound = (engine: Engine, clients: number, runs: number) => async () => {
      let left = clients * runs
      const started = performance.now()
      await Promise.all(
        Array.from({ length: clients }, async () => {
          while (left-- > 0) await engine.run(RUN_STEPS)
        }),
      )
      return (clients * runs * RUN_STEPS * 1000) / (performance.now() - started)
    }
    const round = (clients: number, runs: number, turns: number) => async () => {
      let left = clients * runs
      const started = performance.now()
      await Promise.all(
        Array.from({ length: clients }, async () => {
          while (left-- > 0) await noopRun(server, turns)
        }),
      )
      const steps = clients * runs * (2 * turns + 1)
      const rate = (steps * 1000) / (performance.now() - started)
      largest = Math.max(largest, await server.resident())
      return rate
    }
    return {
      variants: [
        { name: crowd, round: round(50, 4, 10) },
        { name: alone, round: round(1, 20, 10) },
        ...engines.flatMap(engine => [
          { name: `${engine.name}, ${crowd}`, round: peerRound(engine, 50, 4) },
          { name: `${engine.name}, ${alone}`, round: peerRound(engine, 1, 20) },
        ]),
      ],
      expectations: engines.flatMap(({ name }) => [
        ahead(`ahead of ${name}, ${crowd}`, `${name}, ${crowd}`, crowd),
        ahead(`ahead of ${name}, ${alone}`, `${name}, ${alone}`, alone),
      ]),
      figures: async (): Promise<Figure[]> => [
        { name: 'time of a step: steps 900 to 999 over steps 1 to 100', value: await growth(server), unit: '×' },
        { name: 'largest resident memory', value: largest, unit: 'MB' },
      ],
      async close() {
        await server.close()
        for (const engine of engines) await engine.close()
      },
    }
  },
}

async function others(): Promise<Engine[]> {
  const dbos = await dbosEngine()
  if (dbos === undefined) process.stderr.write('DBOS is left out: no PostgreSQL of Debian is installed here.\n')
  return [await restateEngine(), ...(dbos ? [dbos] : [])]
}

/** Ours over theirs, of the same round. */
function ahead(says: string, theirs: string, ours: string) {
  const over = (measured: Measured) => (ours === crowd ? 1 : ratioOf(measured, ours)) / ratioOf(measured, theirs)
  return { says, value: over, atLeast: 1 }
}

/** How much longer a late step takes than an early one, by the journal's own times; the median of nine runs. */
async function growth(server: BenchRuntime): Promise<number> {
  const ratios: number[] = []
  for (let run = 0; run < 9; run++) {
    const id = await noopRun(server, 499)
    const journal = JSON.parse((await server.call('GET', `/v1/runs/${id}/journal`)).text) as JournalExport
    const started = journal.events.filter(event => event.kind === 'step_started').map(event => Date.parse(event.at))
    ratios.push((started[999 - 1]! - started[899]!) / 99 / ((started[100]! - started[1]!) / 99))
  }
  return ratios.toSorted((a, b) => a - b)[4]!
}
