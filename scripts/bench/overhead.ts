import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, untilAnswers } from './free-port.ts'
import type { Bench, Figure, Measured } from './harness.ts'
import { sequential, throughput } from './overhead/load.ts'

const root = new URL('../../', import.meta.url).pathname
const CALLS = 3000
const LATENCY_ROUNDS = 6
const LATENCY_CALLS = 150

const figure = ({ figures }: Measured, name: string) => figures.find(one => one.name === name)!.value
const rate = ({ variants }: Measured, name: string) => variants.find(one => one.name === name)!.median

/** What a hop costs: this router beside the least a proxy can do and beside proxies people would write. */
export const overheadBench: Bench = {
  title: 'Overhead of the hop',
  about:
    'A mock provider, each proxy and the load generator in processes of their own on two shared cores. Requests of about 1 kB, ' +
    'answers of about 1 kB or a stream of 30 frames. Throughput over 32 connections; added latency over one connection is the ' +
    'median of the calls through the proxy less the median of the calls made directly in the same round. Tracing is on.',
  unit: 'req/s',
  rounds: 7,
  expectations: [
    {
      says: 'observe, JSON: added latency over that of Hono with fetch',
      value: m => figure(m, 'observe, JSON, added') / figure(m, 'hono-fetch, JSON, added'),
      atMost: 0.5,
    },
    {
      says: 'observe: added first byte of a stream over added latency of JSON',
      value: m => figure(m, 'observe, stream first byte, added') / figure(m, 'observe, JSON, added'),
      atMost: 1,
    },
    { says: 'observe: throughput over the floor', value: m => rate(m, 'observe') / rate(m, 'floor'), atLeast: 0.8 },
    {
      says: 'observe: throughput over the node:http agent proxy',
      value: m => rate(m, 'observe') / rate(m, 'agent-proxy'),
      atLeast: 1.5,
    },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-overhead-'))
    const children: ChildProcess[] = []
    const start = async (script: string, args: string[], vars: Record<string, string>) => {
      const port = await freePort()
      const origin = `http://127.0.0.1:${port}`
      const env = { PATH: process.env.PATH, PORT: String(port), ROUTER_BIND: `127.0.0.1:${port}`, ...vars }
      children.push(spawn(process.execPath, [root + script, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }))
      await untilAnswers(origin)
      return origin
    }
    const direct = await start('scripts/bench/overhead/upstream.ts', [], {})
    const through = { UPSTREAM: direct }
    const origins: Record<string, string> = {
      floor: await start('scripts/bench/overhead/floor.ts', [], through),
      'agent-proxy': await start('scripts/bench/overhead/agent-proxy.ts', [], through),
      'hono-fetch': await start('scripts/bench/overhead/hono-fetch.ts', [], through),
      observe: await start('router/cli/main.ts', ['serve'], {
        ROUTER_UPSTREAM_MESSAGES: direct,
        ROUTER_DB: join(folder, 'router.db'),
        RUST_LOG: 'error',
      }),
    }
    return {
      variants: Object.entries(origins).map(([name, origin]) => ({ name, round: () => throughput(origin, CALLS) })),
      figures: () => added(direct, origins),
      async close() {
        for (const child of children) child.kill('SIGKILL')
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

/** Added medians, round by round beside direct calls, then the median of the rounds. */
async function added(direct: string, origins: Record<string, string>): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [what, stream] of [
    ['JSON', false],
    ['stream first byte', true],
  ] as const) {
    const found = new Map<string, number[]>(Object.keys(origins).map(name => [name, []]))
    const timed = async (origin: string) =>
      median((await sequential(origin, LATENCY_CALLS, stream)).map(({ first, total }) => (stream ? first : total)))
    for (let round = 0; round < LATENCY_ROUNDS; round++) {
      const base = await timed(direct)
      for (const [name, origin] of Object.entries(origins)) found.get(name)!.push((await timed(origin)) - base)
    }
    for (const [name, values] of found)
      figures.push({ name: `${name}, ${what}, added`, value: median(values), unit: 'ms' })
  }
  return figures
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}
