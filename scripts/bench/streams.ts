import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort, untilAnswers } from './free-port.ts'
import type { Bench, Measured } from './harness.ts'

const root = new URL('../../', import.meta.url).pathname
const STREAMS = 200
const MEGABYTES = 5
const PAUSE_MS = 3000
const all = STREAMS * MEGABYTES

const PASSING = 'memory of a stream that passes, readers as fast as they can'
const SLOW = 'memory of a stream that passes, readers that wait'
const HELD = 'memory of a stream that is held until it is gated, over its bytes'
const figure = (name: string) => (m: Measured) => m.figures.find(one => one.name === name)!.value

/** Many long streams at once: how fast they pass, and what a router holds of them. */
export const streamsBench: Bench = {
  title: 'Long streams',
  about: `${STREAMS} streams of ${MEGABYTES} MB at once through a router in a process of its own, from a provider that sends as fast as it can. Readers that wait take the head of the answer and nothing more for ${PAUSE_MS / 1000} seconds. In enforce a stream is held whole, since its gates may still refuse it. Memory is the growth of the process’s largest resident size, divided by the streams.`,
  unit: 'MB/s',
  rounds: 1,
  roundsWithinMs: 60_000,
  expectations: [
    { says: `${PASSING}, kB`, value: figure(PASSING), atMost: 512 },
    { says: `${SLOW}, kB`, value: figure(SLOW), atMost: 512 },
    { says: HELD, value: figure(HELD), atMost: 4 },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-streams-'))
    const children: ChildProcess[] = []
    const agent = new Agent({ keepAlive: true, maxSockets: STREAMS })
    const start = async (script: string, args: string[], vars: Record<string, string>) => {
      const port = await freePort()
      const env = { PATH: process.env.PATH, PORT: String(port), ROUTER_BIND: `127.0.0.1:${port}`, ...vars }
      const child = spawn(process.execPath, [root + script, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
      children.push(child)
      await untilAnswers(`http://127.0.0.1:${port}`)
      return { port, pid: child.pid! }
    }
    const provider = await start('scripts/bench/streams/provider.ts', [], { MEGABYTES: String(MEGABYTES) })
    const origin = `http://127.0.0.1:${provider.port}`
    await writeFile(join(folder, 'router.toml'), holding(origin))
    const router = (name: string, vars: Record<string, string>) =>
      start('router/cli/main.ts', ['serve'], {
        ROUTER_UPSTREAM_MESSAGES: origin,
        ROUTER_DB: join(folder, `${name}.db`),
        RUST_LOG: 'error',
        ...vars,
      })
    const rate = (port: number) => async () => {
      const began = performance.now()
      await streams(agent, port, 0)
      return (all * 1000) / (performance.now() - began)
    }
    const passing = await router('observe', {})
    /** Kilobytes for each stream, of a router that has had no call before. */
    const growth = async (name: string, vars: Record<string, string>, pauseMs: number) => {
      const fresh = await router(name, vars)
      const before = await peak(fresh.pid)
      await streams(agent, fresh.port, pauseMs)
      return ((await peak(fresh.pid)) - before) / STREAMS
    }
    return {
      variants: [
        { name: 'direct', round: rate(provider.port) },
        { name: 'observe', round: rate(passing.port) },
      ],
      figures: async () => [
        { name: PASSING, value: await growth('passing', {}, 0), unit: 'kB' },
        { name: SLOW, value: await growth('slow', {}, PAUSE_MS), unit: 'kB' },
        {
          name: HELD,
          value: (await growth('held', { ROUTER_CONFIG: join(folder, 'router.toml') }, 0)) / (MEGABYTES * 1000),
          unit: '×',
        },
      ],
      async close() {
        agent.destroy()
        for (const child of children) child.kill('SIGKILL')
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

const holding = (origin: string) => `version = 1
price = [{ model = "mock/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/claude-haiku-4-5"]
gates = ["non-empty"]
early_release = false
`

const ASK = JSON.stringify({
  model: 'claude-haiku-4-5',
  max_tokens: 64,
  stream: true,
  messages: [{ role: 'user', content: 'hi' }],
})

async function streams(agent: Agent, port: number, pauseMs: number): Promise<void> {
  await Promise.all(Array.from({ length: STREAMS }, () => stream(agent, port, pauseMs)))
}

function stream(agent: Agent, port: number, pauseMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': ASK.length }
    const sent = request({ agent, port, host: '127.0.0.1', method: 'POST', path: '/v1/messages', headers }, answer => {
      let bytes = 0
      answer.on('end', () => {
        if (answer.statusCode === 200 && bytes >= MEGABYTES * 1_000_000) resolve()
        else reject(new Error(`a stream of ${bytes} bytes came with status ${answer.statusCode}`))
      })
      answer.on('error', reject)
      void wait(pauseMs).then(() =>
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
        }),
      )
    })
    sent.on('error', reject)
    sent.end(ASK)
  })
}

/** The largest resident size so far, in kilobytes. */
async function peak(pid: number): Promise<number> {
  return Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1.024
}
