import { copyFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { atTerminal } from '../../runtime/cli/testing/terminal-fixture.ts'
import type { RuntimeService } from '../../runtime/host/node.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

let stores: ShardedStores
let service: RuntimeService | undefined
const tenants: { id: string; key: string }[] = []

beforeAll(async () => {
  stores = await shardedStores(['a', 'b'], { servers: false })
  service = await serveHere(stores)
  stores.vars.PLATFORM_LOG_LEVEL = 'off'
  for (const name of ['one', 'two']) tenants.push(await newTenant(service.origin, name))
  await service.close()
  service = undefined
}, 60_000)
afterAll(async () => {
  await service?.close()
  await stores?.close()
})

/** A store is these files. */
async function each(from: string, to: string, act: (from: string, to: string) => Promise<void>): Promise<void> {
  for (const end of ['', '-wal', '-shm']) {
    await rm(to + end, { force: true })
    await act(from + end, to + end).catch(() => undefined)
  }
}

/** What each tenant is answered while the store of shard `b` is as `put` leaves it; then the store is put back. */
async function answers(put: (store: string) => Promise<void>): Promise<(number | string)[][]> {
  const store = stores.urls.get('b')!
  await each(store, `${store}.kept`, rename)
  await put(store)
  service = await serveHere(stores)
  try {
    const found = await Promise.all(
      tenants.map(({ key }) => callAt<Run[]>(service!.origin, 'GET', '/v1/agents', { key })),
    )
    return found.map(({ status, body }) => [status, Array.isArray(body) ? 'a list' : 'a refusal'])
  } finally {
    await service.close()
    service = undefined
    await each(`${store}.kept`, store, rename)
  }
}

it('a store that is gone, empty or another shard’s is refused for its own tenants, and the others go on', async () => {
  const refused = [
    [200, 'a list'],
    [503, 'a refusal'],
  ].toSorted()
  expect((await answers(async () => {})).toSorted()).toEqual(refused)
  expect((await answers(store => writeFile(store, ''))).toSorted()).toEqual(refused)
  expect((await answers(store => each(stores.urls.get('a')!, store, copyFile))).toSorted()).toEqual(refused)
  expect((await answers(store => each(`${store}.kept`, store, copyFile))).toSorted()).toEqual([
    [200, 'a list'],
    [200, 'a list'],
  ])
})

it('a command makes no empty store in the place of one that is gone', async () => {
  const store = stores.urls.get('b')!
  await each(store, `${store}.kept`, rename)
  const listed = await atTerminal(['shards', 'list'], stores.vars)
  expect(listed.out).toContain('There is no database at')
  expect(await stat(store).catch(() => undefined)).toBeUndefined()
  await each(`${store}.kept`, store, rename)
})
