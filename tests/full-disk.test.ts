import { mkdtemp, open as openFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { FoundModel } from '../runtime/execution/models/model.ts'
import { createLog } from '../shared/log/log.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { api } from './runtime/api.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** The places of the files are looked at every tenth of a second. */
const looked = () => wait(150)

async function service(writeThread: boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'full-disk-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'x.db')
  // Nothing is executed: what is asked is whether a run is taken at all.
  const on = await api({ url: path, writeThread, limits: { maxConcurrent: 0 } })
  ends.push(on.close)
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
  const create = () => on.call('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'x'.repeat(100_000) } })
  return { ...on, folder, path, create }
}

describe.each([
  ['a store', false],
  ['a store that a thread writes', true],
])('%s', (_, writeThread) => {
  it('a full disk refuses a run in words, and the service says that it is not ready', async () => {
    const { db, create, call, json } = await service(writeThread)
    const { rows } = await db.execute('pragma page_count')
    await db.execute(`pragma max_page_count = ${Number(rows[0]?.[0])}`)
    let answer = await create()
    // There may be room for a few in pages that are free.
    for (let left = 50; answer.status === 201 && left > 0; left--) answer = await create()
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { code: 'store_unavailable', error: 'the disk of the store is full: make room on it, then try again' },
    ])
    expect(await json(503, 'GET', '/readyz')).toMatchObject({
      status: 'failing',
      checks: { database: expect.stringContaining('disk of the store is full') },
    })
    expect((await call('GET', '/healthz')).status).toBe(200)
    await db.execute('pragma max_page_count = 1000000')
    expect((await create()).status).toBe(201)
  })

  it('a full disk loses no answer of a model: it is kept once there is room, and not asked for again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'full-disk-'))
    ends.push(() => rm(folder, { recursive: true, force: true }))
    const { promise: answer, resolve } = Promise.withResolvers<void>()
    let asked = 0
    const model: FoundModel = {
      id: 'test/model',
      async ask() {
        asked++
        await answer
        const spent = { tokensIn: 1, tokensOut: 1, costNano: 2 }
        return { text: 'x'.repeat(200_000), toolCalls: [], stop: 'end', provider: 'test', model: 'test/model', spent }
      },
    }
    const on = await api({ url: join(folder, 'x.db'), writeThread, models: { find: async () => model } })
    ends.push(on.close)
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
    await expect.poll(() => asked).toBe(1)
    const { rows } = await on.db.execute('pragma page_count')
    await on.db.execute(`pragma max_page_count = ${Number(rows[0]?.[0])}`)
    resolve()
    await wait(1500)
    expect(await on.json(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'running' })
    await on.db.execute('pragma max_page_count = 1000000')
    await expect.poll(async () => (await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).status).toBe('succeeded')
    expect(asked).toBe(1)
  })

  it('a damaged store is not ready once that was met, and says what to do', async () => {
    const { db, path, create, call, json } = await service(writeThread)
    for (let n = 0; n < 20; n++) expect((await create()).status).toBe(201)
    await db.execute('pragma wal_checkpoint(truncate)')
    const { rows } = await db.execute("select rootpage from sqlite_master where name = 'run_data'")
    const page = Number(rows[0]?.[0])
    const file = await openFile(path, 'r+')
    await file.write(Buffer.alloc(8192, 0xff), 0, 8192, (page - 1) * 8192)
    await file.close()
    // Of the connection that reads and of the one that writes.
    await db.execute('pragma shrink_memory')
    await db.execute('pragma shrink_memory = 1')
    await db.client.reconnect()
    const answer = await create()
    expect([answer.status, await answer.json()]).toEqual([
      503,
      {
        code: 'store_unavailable',
        error: expect.stringMatching(/damaged, or its disk fails: .* restore a backup if `doctor` finds/),
      },
    ])
    expect(await json(503, 'GET', '/readyz')).toMatchObject({
      checks: { database: expect.stringContaining('damaged') },
    })
    expect((await call('GET', '/healthz')).status).toBe(200)
  })

  it('a store whose file is moved away takes no run that its next start would not know, and goes on once it is back', async () => {
    const { path, create, call, json } = await service(writeThread)
    const before = (await (await create()).json()) as { id: string }
    await rename(path, `${path}.away`)
    await looked()
    const answer = await create()
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { code: 'store_unavailable', error: expect.stringContaining('put the right file in its place') },
    ])
    expect(await json(503, 'GET', '/readyz')).toMatchObject({
      checks: { database: expect.stringContaining('was moved, removed or replaced') },
    })
    expect((await call('GET', '/healthz')).status).toBe(200)
    expect(await json(200, 'GET', `/v1/runs/${before.id}`)).toMatchObject({ id: before.id })
    await rename(`${path}.away`, path)
    expect((await create()).status).toBe(201)
    expect((await call('GET', '/readyz')).status).toBe(200)
  })

  it.each(['-wal', '-shm'])('a store whose %s is gone takes no run that its next start would not know', async end => {
    const { path, create } = await service(writeThread)
    expect((await create()).status).toBe(201)
    await rename(path + end, `${path}.away`)
    await looked()
    expect((await create()).status).toBe(503)
    await rename(`${path}.away`, path + end)
    expect((await create()).status).toBe(201)
  })

  it('a store whose folder is removed takes no run any more', async () => {
    const { folder, create } = await service(writeThread)
    expect((await create()).status).toBe(201)
    await rm(folder, { recursive: true })
    await looked()
    expect((await create()).status).toBe(503)
  })
})

it('a store that is moved away is said once in a while, not at every look for runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'full-disk-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'x.db')
  const lines: string[] = []
  const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(line) })
  const on = await api({ url: path, log })
  ends.push(on.close)
  await on.json(201, 'POST', '/v1/agents', { name: 'waiter', manifest: { model: 'demo/echo', tools: ['wait'] } })
  const input = { prompt: '/call wait {"seconds":2}' }
  await on.json(201, 'POST', '/v1/runs', { agentName: 'waiter', input })
  await wait(500)
  await rename(path, `${path}.away`)
  // It is due meanwhile, and a look follows a second after each that failed.
  await wait(4500)
  expect(lines.filter(line => line.includes('could not be claimed'))).toHaveLength(1)
  await rename(`${path}.away`, path)
})
