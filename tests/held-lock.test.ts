import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { createRouter } from '../router/router.ts'
import { routerSteps } from '../router/schema/steps.ts'
import { openDb } from '../shared/host/open-libsql.ts'
import { migrate } from '../shared/sql/migrate.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { api } from './runtime/api.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'held-lock-'))
  ends.push(() => rm(made, { recursive: true }))
  return made
}

/** Another process that has the write lock of a file until it is let go. */
async function held(path: string) {
  const program = fileURLToPath(new URL('./crash/lock-child.ts', import.meta.url))
  const child: ChildProcess = spawn(process.execPath, [program, path, '120000'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  async function letGo() {
    child.kill('SIGKILL')
    await gone
  }
  ends.push(letGo)
  await once(child.stdout!, 'data')
  return letGo
}

/** Calls again and again until it is stopped; gives the longest time that one call took. */
function longest(call: () => Promise<unknown>) {
  let stopped = false
  let most = 0
  const over = (async () => {
    while (!stopped) {
      const before = performance.now()
      await call()
      most = Math.max(most, performance.now() - before)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  })()
  return async () => {
    stopped = true
    await over
    return most
  }
}

/** The engine's own wait was five seconds; a busy machine may be slow. */
const SOON_MS = 1000

describe.each([
  ['a runtime', false],
  ['a runtime with a thread that writes', true],
])('%s whose store is locked by another process', (_, writeThread) => {
  async function locked() {
    const path = join(await folder(), 'x.db')
    const on = await api({ url: path, writeThread })
    ends.push(on.close)
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
    const letGo = await held(path)
    const looks = longest(async () => {
      await on.json(200, 'GET', '/healthz')
      await on.json(200, 'GET', '/v1/runs')
    })
    const write = (key?: string) =>
      on.call(
        'POST',
        '/v1/runs',
        { agentName: 'worker', input: { prompt: 'x' } },
        key ? { 'idempotency-key': key } : {},
      )
    return { ...on, letGo, looks, write }
  }

  it('answers what only reads, says so, and takes the writes that waited once the lock is free, in their order', async () => {
    const { json, call, letGo, looks, write } = await locked()
    const writes = [write(), write('once'), write()]
    expect(await json(503, 'GET', '/readyz')).toMatchObject({
      status: 'failing',
      checks: { database: expect.stringContaining('locked by another process') },
    })
    await letGo()
    const ids: string[] = []
    for (const answer of await Promise.all(writes)) {
      expect(answer.status).toBe(201)
      ids.push(((await answer.json()) as Run).id)
    }
    expect(await looks()).toBeLessThan(SOON_MS)
    expect((await call('GET', '/readyz')).status).toBe(200)
    for (const id of ids) {
      await expect
        .poll(async () => (await json<Run>(200, 'GET', `/v1/runs/${id}`)).status, { timeout: 20_000 })
        .toBe('succeeded')
    }
  })

  it('refuses a write that has waited for too long, and has made nothing', async () => {
    const { json, letGo, looks, write } = await locked()
    const answers = await Promise.all([write(), write()])
    for (const answer of answers) {
      expect(answer.status).toBe(503)
      expect(await answer.json()).toMatchObject({ code: 'store_unavailable' })
    }
    expect(await looks()).toBeLessThan(SOON_MS)
    await letGo()
    expect(await json(200, 'GET', '/v1/runs')).toEqual([])
    expect((await write()).status).toBe(201)
  })
})

it('a router whose store is locked by another process answers, and says that it is not ready', async () => {
  const path = join(await folder(), 'r.db')
  const db = await openDb(path)
  ends.push(async () => db.close())
  await migrate(db, 'router', routerSteps)
  const router = createRouter({ db })
  ends.push(() => router.close())
  await router.ready()
  const get = (at: string) => router.fetch(new Request(`http://localhost${at}`))
  const letGo = await held(path)
  const looks = longest(async () => {
    expect((await get('/healthz')).status).toBe(200)
    expect((await get('/-/traces')).status).toBe(200)
  })
  const answer = await get('/readyz')
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ checks: { store: expect.stringContaining('locked by another process') } })
  expect(await looks()).toBeLessThan(SOON_MS)
  await letGo()
  await expect.poll(async () => (await get('/readyz')).status, { timeout: 20_000 }).toBe(200)
})
