import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Bench, Measured } from './harness.ts'
import { added, startProgram } from './overhead/hops.ts'
import { type Asking, type Hop, throughput } from './overhead/load.ts'
import { installPeer, peerVersion } from './peers/install.ts'

const root = new URL('../../', import.meta.url).pathname
const CALLS = 3000
/** By then the engine has compiled what a call runs: the functions that each call enters once are compiled after some ten thousand. */
const WARM = { calls: 20_000, streams: 3000, long: 1000 }
/** A conversation of an agent: about 200 kB. */
const TURNS = 200
const KINDS: [what: string, asking: Asking][] = [
  ['JSON', {}],
  ['stream first byte', { stream: true }],
  ['200 kB', { turns: TURNS }],
]

const figure = ({ figures }: Measured, name: string) => figures.find(one => one.name === name)!.value
const rate = ({ variants }: Measured, name: string) => variants.find(one => one.name === name)!.median

/** What a hop costs: this router beside the least a proxy can do and beside proxies people would write. */
export const overheadBench: Bench = {
  title: 'Overhead of the hop',
  about:
    'A mock provider, each proxy and the load generator in processes of their own on two shared cores. Requests of about 1 kB, ' +
    'answers of about 1 kB or a stream of 30 frames. Throughput over 32 connections; added latency over one connection is the ' +
    'median of the calls through the proxy less the median of the calls made directly in the same round; "200 kB" is JSON behind a request of that ' +
    `size. Each has answered ${WARM.calls.toLocaleString('en')} calls, ${WARM.streams.toLocaleString('en')} streams and ${WARM.long.toLocaleString('en')} requests of 200 kB before it is measured. Tracing is on.`,
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
  ],
  peers: 'The gateway of Portkey runs with its own defaults, told the provider and its address by headers.',
  async prepare({ peers }) {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-overhead-'))
    const children: ChildProcess[] = []
    const start = async (script: string, given: string[], vars: Record<string, string>) => {
      const args = [resolve(root, script), ...given]
      const { origin, child } = await startProgram({
        command: process.execPath,
        args,
        vars: { ROUTER_BIND: '127.0.0.1:PORT', ...vars },
      })
      children.push(child)
      return origin
    }
    const direct = await start('scripts/bench/overhead/upstream.ts', [], {})
    const through = { UPSTREAM: direct }
    const hops: Record<string, Hop> = {
      floor: { origin: await start('scripts/bench/overhead/floor.ts', [], through) },
      'agent-proxy': { origin: await start('scripts/bench/overhead/agent-proxy.ts', [], through) },
      'hono-fetch': { origin: await start('scripts/bench/overhead/hono-fetch.ts', [], through) },
      observe: {
        origin: await start('router/cli/main.ts', ['serve'], {
          ROUTER_UPSTREAM_MESSAGES: direct,
          ROUTER_DB: join(folder, 'router.db'),
          RUST_LOG: 'error',
        }),
      },
    }
    await writeFile(join(folder, 'router.toml'), enforcing(direct))
    const config = { ROUTER_CONFIG: join(folder, 'router.toml'), ROUTER_DB: join(folder, 'enforce.db') }
    hops.enforce = { origin: await start('router/cli/main.ts', ['serve'], { ...config, RUST_LOG: 'error' }) }
    const portkey = `Portkey ${peerVersion('portkey')}`
    if (peers) {
      const gateway = join(await installPeer('portkey'), 'node_modules/@portkey-ai/gateway/build/start-server.js')
      const headers = ['x-portkey-provider', 'anthropic', 'x-portkey-custom-host', `${direct}/v1`]
      hops[portkey] = { origin: await start(gateway, ['--headless', '--port=PORT'], {}), headers }
    }
    for (const hop of Object.values(hops)) {
      await throughput(hop, WARM.calls)
      await throughput(hop, WARM.streams, { stream: true })
      await throughput(hop, WARM.long, { turns: TURNS })
    }
    return {
      variants: Object.entries(hops).map(([name, hop]) => ({ name, round: () => throughput(hop, CALLS) })),
      figures: () => added({ origin: direct }, hops, KINDS),
      expectations: peers
        ? [
            {
              says: `observe: throughput over ${portkey}`,
              value: (m: Measured) => rate(m, 'observe') / rate(m, portkey),
              atLeast: 1,
            },
          ]
        : [],
      async close() {
        for (const child of children) child.kill('SIGKILL')
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

/** A route whose first rung is what was asked for, held to two gates. */
export const enforcing = (origin: string) => `version = 1
price = [
  { model = "mock/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mock/top", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/claude-haiku-4-5", "mock/top"]
gates = ["non-empty", "json-valid"]
`
