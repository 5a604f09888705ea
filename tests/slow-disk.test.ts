import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Run } from '../shared/wire/runtime/run.ts'
import { programEnv } from './program-env.ts'
import { sseReader } from './runtime/sse.ts'

const root = new URL('..', import.meta.url)
const KEY = `wb_live_${'s'.repeat(43)}`
const STALL_MS = 3000
/** A busy machine may be slow, and a stall is three seconds. */
const SOON_MS = 1000

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'slow-disk-'))
  ends.push(() => rm(made, { recursive: true, force: true }))
  return made
}

/** The runtime as an operator starts it, in front of which may stand another program. */
async function served(data: string, before: readonly string[] = [], preload: readonly string[] = []) {
  const [program = '', ...args] = [...before, process.execPath, ...preload, 'runtime/cli/main.ts', 'serve']
  const child: ChildProcess = spawn(program, args, {
    cwd: root,
    detached: true,
    env: {
      ...programEnv,
      PLATFORM_BIND: '127.0.0.1:0',
      PLATFORM_DATA_DIR: data,
      PLATFORM_BOOTSTRAP_KEY: KEY,
      PLATFORM_LOG_FORMAT: 'json',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let lines = ''
  child.stderr!.on('data', chunk => {
    lines += String(chunk)
  })
  const gone = once(child, 'exit')
  ends.push(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
    await gone
  })
  const origin = /http:\S+/.exec(String((await once(child.stdout!, 'data'))[0]))![0]
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const get = (path: string) => fetch(origin + path, { headers })
  const post = (path: string, body: unknown) =>
    fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { child, gone, get, post, lines: () => lines }
}

type Served = Awaited<ReturnType<typeof served>>

const runOf = ({ post }: Served, prompt: string): Promise<Response> =>
  post('/v1/runs', { agentName: 'worker', input: { prompt } })

const agentIn = ({ post }: Served) => post('/v1/agents', { name: 'worker', manifest: { tools: ['wait'] } })

const traces =
  spawnSync('strace', ['-qq', '-o', '/dev/null', '-e', 'inject=fdatasync:delay_enter=1', 'true']).status === 0

describe.runIf(traces)('a runtime whose disk stalls for seconds at a sync', () => {
  it('answers what only reads, streams what has happened, and says that it is not ready', async () => {
    const data = await folder()
    const calm = await served(data)
    await agentIn(calm)
    const { id } = (await (await runOf(calm, 'hello')).json()) as Run
    await expect.poll(async () => ((await (await calm.get(`/v1/runs/${id}`)).json()) as Run).status).toBe('succeeded')
    process.kill(calm.child.pid!, 'SIGTERM')
    expect(await calm.gone).toEqual([0, null])

    // From the 40th sync of a thread on: a busy machine needs fewer for as many writes, so they go on until it stalls.
    const inject = `inject=fdatasync,fsync:delay_enter=${STALL_MS * 1000}:when=40+`
    const log = join(data, 'syncs')
    const strace = ['strace', '-f', '-qq', '-o', log, '-e', 'trace=fdatasync,fsync', '-e', inject]
    const slow = await served(data, strace)
    // The thread that writes is there a moment after the service: until then its first thread makes the commits.
    const syncing = async () => {
      await runOf(slow, 'hello')
      return new Set((await readFile(log, 'utf8')).match(/^\d+/gm)).size
    }
    await expect.poll(syncing, { timeout: 20_000, interval: 250 }).toBe(2)
    const writes: Promise<number>[] = []
    let waiting = 0
    let answeredAt = performance.now()
    const stalls = () => waiting > 20 && performance.now() - answeredAt > 500
    const write = async () => {
      waiting++
      const { status } = await runOf(slow, 'hello')
      waiting--
      answeredAt = performance.now()
      return status
    }
    const until = performance.now() + 20_000
    while (!stalls() && performance.now() < until) {
      if (waiting < 40) writes.push(write())
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    expect(stalls()).toBe(true)
    let longest = 0
    for (const path of ['/healthz', `/v1/runs/${id}`, '/healthz', '/v1/runs', '/healthz']) {
      const before = performance.now()
      expect((await slow.get(path)).status).toBe(200)
      longest = Math.max(longest, performance.now() - before)
    }
    const before = performance.now()
    const stream = sseReader((await slow.get(`/v1/runs/${id}/events`)).body!)
    expect((await stream.next())?.event).toBeDefined()
    longest = Math.max(longest, performance.now() - before)
    expect(waiting).toBeGreaterThan(0)
    expect(longest).toBeLessThan(SOON_MS)
    const ready = await slow.get('/readyz')
    expect([ready.status, await ready.json()]).toEqual([
      503,
      expect.objectContaining({
        checks: expect.objectContaining({ database: expect.stringContaining('has not taken a write') }),
      }),
    ])
    expect(new Set(await Promise.all(writes))).toEqual(new Set([201]))
  }, 60_000)
})

it('a runtime whose writing thread ends goes with it, says so, and its run goes on at the next start', async () => {
  const data = await folder()
  const first = await served(data, [], ['--import', new URL('end-worker.ts', import.meta.url).href])
  await agentIn(first)
  const { id } = (await (await runOf(first, '/call*2 wait {"seconds":1}')).json()) as Run
  process.kill(first.child.pid!, 'SIGUSR2')
  expect(await first.gone).toEqual([1, null])
  expect(first.lines()).toContain('the thread that writes the store ended, and the service with it')
  const second = await served(data)
  await expect
    .poll(async () => ((await (await second.get(`/v1/runs/${id}`)).json()) as Run).status, { timeout: 30_000 })
    .toBe('succeeded')
  process.kill(second.child.pid!, 'SIGTERM')
  expect(await second.gone).toEqual([0, null])
}, 60_000)
