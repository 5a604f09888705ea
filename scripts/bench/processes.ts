import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Bench, Figure } from './harness.ts'
import { type Running, startProgram } from './overhead/hops.ts'
import { throughput } from './overhead/load.ts'
import { enforcing } from './overhead.ts'
import { childrenOf, processorTime } from './processes/processor-time.ts'

const root = new URL('../../', import.meta.url).pathname
const CALLS = 4000
const WARM_CALLS = 12_000
const COUNTS = ['1', '2'] as const

/** Processor time of the parts of a router, in milliseconds. */
interface Parts {
  first: number
  writer: number
  serving: number
  /** The busiest thread of those that answer. */
  main: number
}

interface Service extends Running {
  name: string
  /** All that the counted rounds used, and how many calls those were. */
  used: Parts
  others: number
  calls: number
}

/** One process against several at one address, and what each part of it costs. */
export const processesBench: Bench = {
  title: 'Several processes',
  about:
    'The enforced route of the overhead bench behind one process and behind two with their writer, over 32 connections, in turn. Provider, router ' +
    'and load generator share two cores, so calls per second say how little more the work costs, not what more cores give; the processor time of ' +
    'each part, by the accounting of the kernel, says that. "Main thread" is the one that answers: one process can use no more than one core of it.',
  unit: 'req/s',
  rounds: 5,
  expectations: [],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-processes-'))
    const run = async (script: string, args: string[], vars: Record<string, string>) =>
      startProgram({ command: process.execPath, args: [resolve(root, script), ...args], vars })
    const upstream = await run('scripts/bench/overhead/upstream.ts', [], {})
    await writeFile(join(folder, 'router.toml'), enforcing(upstream.origin))
    const services: Service[] = []
    for (const count of COUNTS) {
      const made = await run('router/cli/main.ts', ['serve', '--processes', count], {
        ROUTER_BIND: '127.0.0.1:PORT',
        ROUTER_CONFIG: join(folder, 'router.toml'),
        ROUTER_DB: join(folder, `${count}.db`),
        RUST_LOG: 'error',
      })
      services.push({
        ...made,
        name: count === '1' ? 'one process' : `${count} processes`,
        used: { first: 0, writer: 0, serving: 0, main: 0 },
        others: 0,
        calls: 0,
      })
    }
    for (const [at, service] of services.entries()) await throughput(service, WARM_CALLS * Number(COUNTS[at]))
    const upstreamAndLoad = async () => (await processorTime(upstream.child.pid!)).all + own()
    const round = async (service: Service): Promise<number> => {
      const before = await partsOf(service.child.pid!)
      const othersBefore = await upstreamAndLoad()
      const rate = await throughput(service, CALLS)
      const after = await partsOf(service.child.pid!)
      for (const part of ['first', 'writer', 'serving', 'main'] as const)
        service.used[part] += after[part] - before[part]
      service.others += (await upstreamAndLoad()) - othersBefore
      service.calls += CALLS
      return rate
    }
    return {
      variants: services.map(service => ({ name: service.name, round: () => round(service) })),
      figures: async () => services.flatMap(figuresOf),
      async close() {
        upstream.child.kill('SIGKILL')
        await Promise.all(
          services.map(({ child }) => {
            const ended = new Promise(done => child.once('exit', done))
            child.kill('SIGTERM')
            return ended
          }),
        )
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

function own(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function partsOf(pid: number): Promise<Parts> {
  const first = await processorTime(pid)
  const children = await childrenOf(pid)
  const times = await Promise.all(children.map(async ({ pid, role }) => ({ role, ...(await processorTime(pid)) })))
  const sum = (role: string, what: 'all' | 'main') =>
    times.filter(one => one.role === role).reduce((total, one) => total + one[what], 0)
  if (sum('serve', 'all') === 0) return { first: 0, writer: 0, serving: first.all, main: first.main }
  return { first: first.all, writer: sum('writer', 'all'), serving: sum('serve', 'all'), main: sum('serve', 'main') }
}

function figuresOf({ name, used, others, calls }: Service): Figure[] {
  const each = (what: string, ms: number): Figure => ({
    name: `${name}, ${what}`,
    value: (ms * 1000) / calls,
    unit: 'µs a call',
  })
  return [
    each('that answers', used.serving),
    each('of it its main thread', used.main),
    ...(used.writer > 0 ? [each('that writes', used.writer), each('that accepts', used.first)] : []),
    each('provider and load generator', others),
  ]
}
