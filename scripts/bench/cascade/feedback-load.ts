import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from 'undici'
import { freePort, untilAnswers } from '../free-port.ts'
import { quantile } from '../harness.ts'

const root = new URL('../../../', import.meta.url).pathname
const SECONDS = 8
const TICK_MS = 4

interface Latency {
  rate: number
  p50: number
  p99: number
}

export interface LoadResult {
  /** Without reports, on the same router just before. */
  alone: Latency
  routed: Latency
  feedback: Latency
}

const CONFIG = (origin: string) => `version = 1
price = [
  { model = "mock/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mock/top", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/cheap", "mock/top"]
gates = ["non-empty"]
`

const ASK = JSON.stringify({ model: 'auto', max_tokens: 64, messages: [{ role: 'user', content: 'x'.repeat(800) }] })
const HEADERS = ['content-type', 'application/json']

/**
 * `rate` requests a second through a router in a process of its own, and as many reports on earlier answers beside them. Sent by the
 * clock and not by the answers, so a router that falls behind shows it.
 */
export async function feedbackLoad(rate: number): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-feedback-load-'))
  const children: ChildProcess[] = []
  const start = async (script: string, args: string[], vars: (port: number) => Record<string, string>) => {
    const port = await freePort()
    const env = { PATH: process.env.PATH, ...vars(port) }
    children.push(spawn(process.execPath, [root + script, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }))
    const origin = `http://127.0.0.1:${port}`
    await untilAnswers(origin)
    return origin
  }
  const agent = new Agent({ connections: 64, pipelining: 1 })
  try {
    const upstream = await start('scripts/bench/overhead/upstream.ts', [], port => ({ PORT: String(port) }))
    await writeFile(join(folder, 'router.toml'), CONFIG(upstream))
    const router = await start('router/cli/main.ts', ['serve'], port => ({
      ROUTER_BIND: `127.0.0.1:${port}`,
      ROUTER_DB: join(folder, 'router.db'),
      ROUTER_CONFIG: join(folder, 'router.toml'),
      RUST_LOG: 'error',
    }))
    return await drive(agent, router, rate)
  } finally {
    await agent.close()
    for (const child of children) child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
}

async function drive(agent: Agent, origin: string, rate: number): Promise<LoadResult> {
  const ids: string[] = []
  const times = { routed: [] as number[], feedback: [] as number[] }
  const underway = new Set<Promise<void>>()
  const one = (work: Promise<void>) => {
    underway.add(work)
    void work.finally(() => underway.delete(work))
  }
  const routed = async () => {
    const { took, traceId } = await send(agent, origin, '/v1/messages', ASK, 200)
    times.routed.push(took)
    ids.push(traceId)
  }
  const told = async (id: string, n: number) => {
    const body = JSON.stringify({ request_id: id, outcome: n % 20 === 0 ? 'incorrect' : 'correct' })
    times.feedback.push((await send(agent, origin, '/v1/feedback', body, 202)).took)
  }
  // Code is warm and there is something to report on.
  for (let i = 0; i < 300; i++) await routed()
  for (let i = 0; i < 100; i++) await told(ids.shift()!, i)
  const { routed: alone } = await phase(false)
  return { alone, ...(await phase(true)) }

  async function phase(reports: boolean): Promise<{ routed: Latency; feedback: Latency }> {
    times.routed = []
    times.feedback = []
    const began = performance.now()
    let sent = 0
    for (let now = began; now - began < SECONDS * 1000; now = performance.now()) {
      for (const due = ((now - began) / 1000) * rate; sent < due; sent++) {
        one(routed())
        const id = reports ? ids.shift() : undefined
        if (id !== undefined) one(told(id, sent))
      }
      await wait(TICK_MS)
    }
    await Promise.all(underway)
    const seconds = (performance.now() - began) / 1000
    const summary = (values: number[]) => {
      const sorted = values.sort((a, b) => a - b)
      return { rate: values.length / seconds, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }
    }
    return { routed: summary(times.routed), feedback: summary(times.feedback) }
  }
}

function send(
  agent: Agent,
  origin: string,
  path: string,
  body: string,
  expected: number,
): Promise<{ took: number; traceId: string }> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    let traceId = ''
    agent.dispatch(
      { origin, path, method: 'POST', headers: HEADERS, body },
      {
        onConnect() {},
        onHeaders(status: number, headers: Buffer[]) {
          if (status !== expected) reject(new Error(`${path} was answered with ${status}, expected ${expected}`))
          const at = headers.findIndex(name => String(name).toLowerCase() === 'x-router-trace-id')
          traceId = at < 0 ? '' : String(headers[at + 1])
          return true
        },
        onData: () => true,
        onComplete: () => resolve({ took: performance.now() - start, traceId }),
        onError: reject,
      },
    )
  })
}
