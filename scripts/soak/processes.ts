import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createClient } from '@libsql/client'
import { Agent } from 'undici'
import { freePort, untilAnswers } from '../bench/free-port.ts'
import { growth, type Held, heldBy } from './held.ts'
import { INSIDE_FILE, insideOf } from './inside.ts'

const root = new URL('../../', import.meta.url).pathname
const ROUTER = `${root}dist/router/cli/main.js`
const CLIENTS = 16
const PAUSE_MS = 60
/** Until the young generation of the process that accepts has the size that it keeps. */
const CONNECTIONS_BEFORE = 60_000
/** Of what is stored behind an answer. */
const BEHIND_MS = 3000

const CONFIG = (origin: string) => `version = 1
price = [{ model = "mock/cheap", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
[budget]
per_day_usd = 100000
[[route]]
match = { model = "auto" }
mode = "enforce"
ladder = ["mock/cheap"]
gates = ["non-empty"]
`

const ROLES = ['first', 'serve', 'writer'] as const
type Role = (typeof ROLES)[number]

interface Soak {
  processes: number
  minutes: number
  folder: string
  fault: (text: string) => void
  /** Ended by the caller, whatever happens here. */
  children: ChildProcess[]
}

/**
 * A router of several processes under a steady load. One that answers is killed in the middle and the one that writes at three quarters. Prints
 * what each kind of process held, and says what failed, what is missing in the store and what grew.
 */
export async function soakProcesses({ processes, minutes, folder: parent, fault, children }: Soak): Promise<void> {
  const folder = await mkdtemp(join(parent, 'processes-'))
  const db = join(folder, 'router.db')
  const inside = join(folder, 'inside')
  const { router, upstream, origin } = await startRouter({ processes, folder, db, inside, children })
  const ended = once(router, 'exit')
  await openAndClose(Number(new URL(origin).port))

  const load = steadyLoad(origin)
  const kills: Kill[] = [
    { at: 0.5, role: 'serve' },
    { at: 0.75, role: 'writer' },
  ]
  const samples = new Map<Role, Held[]>(ROLES.map(role => [role, []]))
  const began = Date.now()
  const lasts = minutes * 60_000
  while (Date.now() - began < lasts && router.exitCode === null) {
    await wait(Math.max(1000, lasts / 240))
    const pids = pidsOf(router.pid!)
    for (const role of ROLES) {
      const held = pids[role].map(pid => heldWithin(pid, inside))
      if (held.length > 0) samples.get(role)!.push(sumOf(held))
    }
    const due = kills[0]
    if (due === undefined || Date.now() - began < due.at * lasts) continue
    kills.shift()
    // Connections are handed out in turn, and each has one call at a time.
    const most = due.role === 'serve' ? Math.ceil(CLIENTS / processes) + 1 : 0
    await killUnderLoad(due.role, pids[due.role][0]!, { load, most, fault })
  }
  await load.stop()
  await wait(BEHIND_MS)

  const page = await (await fetch(`${origin}/metrics`)).text()
  const counted = [...page.matchAll(/^router_requests_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
  router.kill('SIGTERM')
  const [code] = await Promise.race([ended, wait(30_000, ['did not end within 30 s'])])
  if (code !== 0) fault(`the router exits with a failure at SIGTERM: ${code}`)
  upstream.kill('SIGKILL')

  say(`${load.answered.size} calls answered, ${load.broken} broken off, ${counted} on its page of metrics`)
  for (const [status, times] of load.odd) fault(`${times} answers ${status}`)
  const missing = await missingIn(db, load.answered)
  if (missing > 0) fault(`${missing} receipts of answered calls are not in the store`)
  const { stdout } = await promisify(execFile)(process.execPath, [ROUTER, 'verify', '--db', db])
  say(stdout.trim())
  reportGrowth(samples, fault)
  await rm(folder, { recursive: true, force: true })
}

interface Kill {
  /** The share of the time after which it is due. */
  at: number
  role: Role
}

const say = (text: string) => process.stdout.write(`${text}\n`)

interface RouterFiles extends Pick<Soak, 'processes' | 'folder' | 'children'> {
  db: string
  /** Where each process writes what it holds. */
  inside: string
}

/** A router of several processes and the provider that it calls, once both answer. */
async function startRouter({ processes, folder, db, inside, children }: RouterFiles) {
  const [remote, port] = [await freePort(), await freePort()]
  const upstream = spawn(process.execPath, [`${root}scripts/soak/upstream.ts`], {
    env: { PATH: process.env.PATH, PORT: String(remote), SOAK_GOOD_DAY: '1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  children.push(upstream)
  await untilAnswers(`http://127.0.0.1:${remote}`)
  const config = join(folder, 'router.toml')
  await writeFile(config, CONFIG(`http://127.0.0.1:${remote}`))
  const router = spawn(process.execPath, [ROUTER, 'serve', '--processes', String(processes)], {
    env: {
      PATH: process.env.PATH,
      NODE_OPTIONS: `--import ${root}scripts/soak/inside.ts`,
      [INSIDE_FILE]: inside,
      ROUTER_BIND: `127.0.0.1:${port}`,
      ROUTER_CONFIG: config,
      ROUTER_DB: db,
      // Otherwise what a process answered within its last moment goes with it.
      ROUTER_RECEIPTS: 'durable',
      ROUTER_UPSTREAM_MESSAGES: `http://127.0.0.1:${remote}`,
      RUST_LOG: 'error',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  children.push(router)
  const origin = `http://127.0.0.1:${port}`
  await untilAnswers(origin)
  return { router, upstream, origin }
}

type Load = ReturnType<typeof steadyLoad>

/** Clients that call until they are stopped, each over one connection, with a pause after each call. */
function steadyLoad(origin: string) {
  const answered = new Set<string>()
  const odd = new Map<string, number>()
  let broken = 0
  let going = true

  async function client(at: number): Promise<void> {
    const agent = new Agent({ connections: 1, pipelining: 1 })
    const body = JSON.stringify({
      model: at % 2 === 0 ? 'auto' : 'claude-haiku-4-5',
      max_tokens: 64,
      stream: at % 4 === 3,
      messages: [{ role: 'user', content: 'x'.repeat(600) }],
    })
    const call = {
      origin,
      path: '/v1/messages',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    } as const
    while (going) {
      try {
        const { statusCode, headers, body: answer } = await agent.request(call)
        await answer.text()
        if (statusCode === 200) answered.add(String(headers['x-router-trace-id']))
        else odd.set(String(statusCode), (odd.get(String(statusCode)) ?? 0) + 1)
      } catch {
        broken++
      }
      await wait(PAUSE_MS * (0.5 + Math.random()))
    }
    await agent.close()
  }

  const clients = Array.from({ length: CLIENTS }, (_, at) => client(at))
  return {
    /** The trace ids of the calls that were answered. */
    answered,
    /** Answers other than 200, by their status. */
    odd,
    /** Calls without an answer. */
    get broken() {
      return broken
    },
    async stop(): Promise<void> {
      going = false
      await Promise.all(clients)
    },
  }
}

interface KillOptions extends Pick<Soak, 'fault'> {
  load: Load
  /** Calls that may break off with the process. */
  most: number
}

/** Kills a process and looks at what became of the calls of the next seconds. */
async function killUnderLoad(role: Role, pid: number, { load, most, fault }: KillOptions): Promise<void> {
  const [before, failed] = [load.answered.size, load.broken]
  process.kill(pid, 'SIGKILL')
  await wait(5000)
  const lost = load.broken - failed
  const later = load.answered.size - before
  say(`${role} ${pid} killed after ${before} answers: ${lost} calls broken off, ${later} answered in the next 5 s`)
  if (lost > most) fault(`${lost} calls broke off with one process, which had ${most} connections at most`)
  if (later === 0) fault('calls are answered while a process is replaced')
}

function reportGrowth(samples: ReadonlyMap<Role, readonly Held[]>, fault: Soak['fault']): void {
  for (const [role, held] of samples) {
    say(`${role}: ${held.length} samples; second quarter, last quarter`)
    for (const { of, early, late, share } of growth(held)) {
      say(`${of.padStart(9)}  ${early.toFixed(1)}  ${late.toFixed(1)}  ${(share * 100).toFixed(1)} %`)
      if (share > 0.05 && late - early > 5) fault(`${of} of ${role} grew by ${(share * 100).toFixed(1)} %`)
    }
  }
}

function heldWithin(pid: number, inside: string): Held {
  const none = { timers: 0, handles: 0, heapMb: 0, buffersMb: 0 }
  return { ...heldBy(pid), ...(insideOf(`${inside}.${pid}`) ?? none) }
}

async function openAndClose(port: number): Promise<void> {
  let left = CONNECTIONS_BEFORE
  const one = () =>
    new Promise<void>(resolve => {
      const socket = connect(port, '127.0.0.1')
      socket.once('error', () => undefined).once('close', () => resolve())
      socket.resume().write('GET /healthz HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n\r\n')
    })
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (left-- > 0) await one()
    }),
  )
}

/** The first process, and its children by what they do. */
function pidsOf(first: number): Record<Role, number[]> {
  const children = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').trim().split(/\s+/).map(Number)
  const doing = (role: string) =>
    children.filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${role}\0`)
      } catch {
        return false
      }
    })
  return { first: [first], serve: doing('serve'), writer: doing('writer') }
}

function sumOf(held: readonly Held[]): Held {
  const sum = (of: keyof Held) => held.reduce((all, one) => all + one[of], 0)
  return {
    rssMb: sum('rssMb'),
    heapMb: sum('heapMb'),
    buffersMb: sum('buffersMb'),
    sockets: sum('sockets'),
    files: sum('files'),
    threads: sum('threads'),
    timers: sum('timers'),
    handles: sum('handles'),
  }
}

async function missingIn(path: string, answered: ReadonlySet<string>): Promise<number> {
  const client = createClient({ url: `file:${path}` })
  let found = 0
  try {
    for (let from = -1; ; ) {
      const { rows } = await client.execute({
        sql: 'select seq, trace_id from traces where seq > ? order by seq limit 20000',
        args: [from],
      })
      if (rows.length === 0) return answered.size - found
      for (const row of rows) if (answered.has(String(row.trace_id))) found++
      from = Number(rows.at(-1)!.seq)
    }
  } finally {
    client.close()
  }
}
