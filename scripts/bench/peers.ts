import type { ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@libsql/client'
import type { Bench, Figure, Measured } from './harness.ts'
import { added, type Program, startProgram } from './overhead/hops.ts'
import { type Asking, type Hop, throughputFor } from './overhead/load.ts'
import { installPeer, installWheel, peerVersion, wheelVersion } from './peers/install.ts'

const root = new URL('../../', import.meta.url).pathname
const ROUND_MS = 4000
/** Of each kind; the engines compile what they run often within it. */
const WARM_MS = 8000
const KINDS: [what: string, asking: Asking][] = [
  ['JSON', {}],
  ['stream first byte', { stream: true }],
]

/** A router that is measured. */
interface Contestant extends Program {
  headers?: string[]
  /** The store in which it keeps a row for each call. */
  store?: string
}

interface Entrant {
  hop: Hop
  child: ChildProcess
  store: string | undefined
  answered: number
}

const firstpass = `firstpass ${wheelVersion('firstpass')}`
const litellm = `LiteLLM ${wheelVersion('litellm')}`
const portkey = `Portkey ${peerVersion('portkey')}`
const rate = ({ variants }: Measured, name: string) => variants.find(one => one.name === name)!.median

/** What one would run instead, side by side, with what each keeps of the calls that it answered. */
export const peersBench: Bench = {
  title: 'Routers side by side',
  about:
    'A mock provider, each router and the load generator in processes of their own on shared cores; one worker each, as each is started by its own ' +
    `documents, except that logs are silent. Requests and answers of about 1 kB. Each is warmed for ${WARM_MS / 1000} s. Throughput over 32 connections for ${ROUND_MS / 1000} s a round; ` +
    'added latency over one connection, as in "Overhead of the hop". "Enforce" holds each answer to one gate, `json-valid`. Memory is what is resident after the ' +
    'last round. Kept: rows in the store 15 s after the last call, of calls answered. LiteLLM and Portkey keep no record without a service beside them.',
  unit: 'req/s',
  rounds: 5,
  expectations: [
    {
      says: `enforce: throughput over that of ${firstpass}`,
      value: m => rate(m, 'waybill enforce') / rate(m, `${firstpass} enforce`),
      atLeast: 0.9,
    },
    {
      says: 'waybill observe: receipts kept of calls answered',
      value: m => m.figures.find(({ name }) => name === 'waybill observe, kept of answered')!.value,
      atLeast: 100,
    },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-peers-'))
    const children: ChildProcess[] = []
    const upstream = await startProgram({
      command: process.execPath,
      args: [resolve(root, 'scripts/bench/overhead/upstream.ts')],
      vars: {},
    })
    children.push(upstream.child)
    const entrants: Record<string, Entrant> = {}
    for (const [name, contestant] of Object.entries(await contestants(folder, upstream.origin))) {
      const { origin, child } = await startProgram(contestant, 120_000)
      children.push(child)
      const { headers, store } = contestant
      const entrant = { hop: { origin, ...(headers && { headers }) }, child, store, answered: 0 }
      entrants[name] = entrant
      entrant.answered += (await throughputFor(entrant.hop, WARM_MS)).calls
    }
    const hops = Object.fromEntries(Object.entries(entrants).map(([name, { hop }]) => [name, hop]))
    return {
      variants: Object.entries(entrants).map(([name, entrant]) => ({
        name,
        async round() {
          const { rate, calls } = await throughputFor(entrant.hop, ROUND_MS)
          entrant.answered += calls
          return rate
        },
      })),
      async figures() {
        const figures: Figure[] = []
        for (const [name, { child }] of Object.entries(entrants)) {
          figures.push({ name: `${name}, memory`, value: await residentMb(child.pid!), unit: 'MB' })
        }
        await wait(15_000)
        for (const [name, { store, answered }] of Object.entries(entrants)) {
          if (store === undefined) continue
          const value = (100 * (await rowsOf(store))) / answered
          figures.push({ name: `${name}, kept of answered`, value, unit: '%' })
          figures.push({ name: `${name}, answered`, value: answered, unit: 'calls' })
        }
        return [...figures, ...(await added({ origin: upstream.origin }, hops, KINDS))]
      },
      async close() {
        for (const child of children) child.kill('SIGKILL')
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

async function contestants(folder: string, upstream: string): Promise<Record<string, Contestant>> {
  const at = (name: string) => join(folder, name)
  await writeFile(at('router.toml'), enforcing(upstream))
  await writeFile(at('firstpass.toml'), FIRSTPASS)
  await writeFile(at('litellm.json'), JSON.stringify(litellmConfig(upstream)))
  const wheels = await installWheel('firstpass')
  const gateway = join(await installPeer('portkey'), 'node_modules/@portkey-ai/gateway/build/start-server.js')
  const own = (store: string, vars: Record<string, string>): Contestant => ({
    command: process.execPath,
    args: [resolve(root, 'dist/router/cli/main.js'), 'serve'],
    vars: { ROUTER_BIND: '127.0.0.1:PORT', ROUTER_DB: at(store), RUST_LOG: 'error', ...vars },
    store: at(store),
  })
  const rust = (store: string, vars: Record<string, string>): Contestant => ({
    command: join(wheels, 'firstpass-proxy'),
    args: [],
    vars: {
      FIRSTPASS_BIND: '127.0.0.1:PORT',
      FIRSTPASS_DB: at(store),
      FIRSTPASS_UPSTREAM_ANTHROPIC: upstream,
      RUST_LOG: 'error',
      ...vars,
    },
    store: at(store),
  })
  return {
    'waybill observe': own('observe.db', { ROUTER_UPSTREAM_MESSAGES: upstream }),
    'waybill enforce': own('enforce.db', { ROUTER_CONFIG: at('router.toml') }),
    [`${firstpass} observe`]: rust('firstpass.db', {}),
    [`${firstpass} enforce`]: rust('firstpass-enforce.db', {
      FIRSTPASS_MODE: 'enforce',
      FIRSTPASS_CONFIG: at('firstpass.toml'),
    }),
    [litellm]: {
      command: join(await installWheel('litellm'), 'litellm'),
      args: ['--config', at('litellm.json'), '--host', '127.0.0.1', '--port', 'PORT', '--num_workers', '1'],
      vars: {
        HOME: folder,
        LITELLM_LOG: 'ERROR',
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
      },
    },
    [portkey]: {
      command: process.execPath,
      args: [gateway, '--headless', '--port=PORT'],
      vars: {},
      headers: ['x-portkey-provider', 'anthropic', 'x-portkey-custom-host', `${upstream}/v1`],
    },
  }
}

const enforcing = (origin: string) => `version = 1
price = [
  { model = "mock/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mock/top", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/claude-haiku-4-5", "mock/top"]
gates = ["json-valid"]
`

const FIRSTPASS = `[[route]]
match = {}
mode = "enforce"
ladder = ["anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-5"]
gates = ["json-valid"]
`

/** YAML, of which JSON is a part. */
const litellmConfig = (origin: string) => ({
  model_list: [
    {
      model_name: 'claude-haiku-4-5',
      litellm_params: { model: 'anthropic/claude-haiku-4-5', api_base: origin, api_key: 'bench-key' },
    },
  ],
})

async function rowsOf(store: string): Promise<number> {
  const client = createClient({ url: `file:${store}` })
  try {
    return Number((await client.execute('select count(*) as n from traces')).rows[0]?.n)
  } finally {
    client.close()
  }
}

/** Of a process and what it has started. */
async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const own = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => [])
  const children = await Promise.all(
    tasks.map(task => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')),
  )
  const pids = children.flatMap(text => text.split(' ').filter(Boolean).map(Number))
  const below = await Promise.all(pids.map(residentMb))
  return below.reduce((sum, megabytes) => sum + megabytes, own)
}
