import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type ReportedTrace, storedTraces } from '../../router/ope/testing/stored-traces.ts'
import { xoshiro128 } from '../../router/policy/xoshiro128.ts'
import { routerSteps } from '../../router/schema/steps.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import type { Bench, Figure } from './harness.ts'
import { benchDb } from './journal-rows.ts'

const TRACES = 100_000
const FEW = 10_000

export const opeBench: Bench = {
  title: 'Rehearsal of a policy',
  about: `\`router ope --start-rung 1\` over ${TRACES.toLocaleString('en-US')} stored traces with propensities and outcomes, for cost and failure: reading, IPS, SNIPS and DR, each with 1,000 resamples. In a process of its own, start included.`,
  unit: 'traces/s',
  rounds: 3,
  expectations: [
    { says: 'seconds for all of them', value: ({ variants }) => TRACES / variants[0]!.median, atMost: 10 },
    { says: 'MiB grown over a tenth of them', value: ({ figures }) => figures[2]!.value, atMost: 120 },
  ],
  async prepare() {
    const [all, few] = [await filled(TRACES), await filled(FEW)]
    const runs: Ran[] = []
    return {
      variants: [
        {
          name: 'router ope',
          async round() {
            const run = await rehearsed(all.path)
            runs.push(run)
            return TRACES / run.seconds
          },
        },
      ],
      async figures(): Promise<Figure[]> {
        const peak = Math.max(...runs.map(run => run.peak))
        const small = (await rehearsed(few.path)).peak
        return [
          { name: 'its memory at the peak', value: peak, unit: 'MiB' },
          { name: 'processor time', value: Math.min(...runs.map(run => run.cpu)), unit: 's' },
          { name: `grown over ${FEW.toLocaleString('en-US')} traces`, value: peak - small, unit: 'MiB' },
        ]
      },
      async close() {
        await all.close()
        await few.close()
      },
    }
  },
}

async function filled(traces: number): Promise<{ path: string; close: () => Promise<void> }> {
  const { db, close } = await benchDb('normal')
  await migrate(db, 'router', routerSteps)
  const next = xoshiro128(traces)
  for (let at = 0; at < traces; at += 5000) {
    await storedTraces(
      db,
      Array.from({ length: Math.min(5000, traces - at) }, () => drawn(next)),
    )
  }
  const path = rowsOf<{ file: string }>(await db.execute('pragma database_list'))[0]!.file
  return { path, close }
}

/** A trace of a policy that starts on rung 1 in three of ten cases. */
function drawn(next: () => number): ReportedTrace {
  const rung = next() % 10 < 3 ? 1 : 0
  const cost = (1 + rung * 4) * (0.001 + (next() % 1000) * 1e-6)
  const trace = sampleTrace({ cost: Math.round(cost * 1e9) / 1e9, at: Date.UTC(2026, 0, 1) + (next() % 1e6) })
  const { policy, request } = trace
  trace.policy = { ...policy, id: 'thompson@1+eps', start_rung: rung, propensity: rung === 1 ? 0.3 : 0.7 }
  trace.request = { ...request, features: { ...request.features, size_bucket: next() % 20 } }
  return { trace, failed: next() % 10 < 2 - rung }
}

interface Ran {
  seconds: number
  cpu: number
  /** MiB */
  peak: number
}

async function rehearsed(path: string): Promise<Ran> {
  const script = new URL('../../router/cli/main.ts', import.meta.url).pathname
  const meter = new URL('./resources-used.ts', import.meta.url).href
  const started = performance.now()
  const child = spawn(
    process.execPath,
    ['--import', meter, script, 'ope', '--start-rung', '1', '--json', '--db', path],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let [out, said] = ['', '']
  child.stdout.on('data', chunk => (out += String(chunk)))
  child.stderr.on('data', chunk => (said += String(chunk)))
  const [code] = (await once(child, 'close')) as [number]
  const seconds = (performance.now() - started) / 1000
  if (code !== 0 || !out.startsWith('{"rehearsals":[{"metric":"cost"')) throw new Error(`router ope failed: ${said}`)
  const [, peak, cpu] = /peak (\d+) cpu (\d+)/.exec(said) ?? []
  return { seconds, cpu: Number(cpu) / 1e6, peak: Number(peak) / 1024 }
}
