import { rename } from 'node:fs/promises'
import { afterEach, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { addShard as addRouterShard, listShards as listRouterShards } from '../../router/host/shards/shard-admin.ts'
import { moveToShard } from '../../runtime/host/move-shard.ts'
import { addShard, listShards } from '../../runtime/host/shard-admin.ts'
import { callAt, KEY, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

let stores: ShardedStores
afterEach(() => stores?.close())

/** Each store at the address of the other, as after volumes or names were mixed up. */
async function swap(a: string, b: string): Promise<void> {
  for (const end of ['', '-wal', '-shm']) {
    for (const [from, to] of [
      [a, `${a}.between`],
      [b, a],
      [`${a}.between`, b],
    ] as const)
      await rename(from + end, to + end).catch(() => undefined)
  }
}
const OF_OTHER = /is that of shard [ab], not of shard [abc]/
const BOTH = [1, 2].map(() => expect.stringMatching(OF_OTHER) as string)

it('the store of another shard is served, moved from and added for none, also where only the first tenant is used', async () => {
  stores = await shardedStores(['a', 'b'], { servers: false })
  const { vars, urls } = stores
  vars.PLATFORM_LOG_LEVEL = 'off'
  const service = await serveHere(stores)
  expect((await callAt(service.origin, 'POST', '/v1/agents', { body: { name: 'kept' } })).status).toBe(201)
  await service.close()
  const [a, b] = [urls.get('a')!, urls.get('b')!]
  await expect(addShard(vars, { name: 'c', url: `file:${b}` })).rejects.toThrow(OF_OTHER)
  await swap(a, b)
  await expect(serveHere(stores)).rejects.toThrow(OF_OTHER)
  expect((await listShards(vars)).map(({ problem }) => problem)).toEqual(BOTH)
  await swap(a, b)
  const again = await serveHere(stores)
  expect((await callAt(again.origin, 'GET', '/v1/agents')).body).toMatchObject([{ name: 'kept' }])
  const { id, key } = await newTenant(again.origin, 'moving', KEY)
  await again.close()
  const from = (await listShards(vars)).find(({ name, tenants }) => tenants > (name === 'a' ? 1 : 0))!.name
  await swap(a, b)
  await expect(moveToShard(vars, { tenantId: id, to: from === 'a' ? 'b' : 'a' })).rejects.toThrow(OF_OTHER)
  await swap(a, b)
  const last = await serveHere(stores)
  expect((await callAt(last.origin, 'GET', '/v1/agents', { key })).body).toMatchObject([{ name: 'worker' }])
  await last.close()
}, 60_000)

it('a router serves no tenant from the store of another shard', async () => {
  stores = await shardedStores([])
  const vars = {
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DIRECTORY_URL: `${stores.folder}/router-directory.db`,
    ROUTER_KEYS: `acme:${'a'.repeat(30)},beta:${'b'.repeat(30)}`,
    ROUTER_TENANT: 'acme',
    RUST_LOG: 'off',
  }
  const [a, b] = [`${stores.folder}/ra.db`, `${stores.folder}/rb.db`]
  await addRouterShard(vars, { name: 'a', url: a })
  await addRouterShard(vars, { name: 'b', url: b })
  await (await serveRouter(vars)).close()
  await swap(a, b)
  await expect(serveRouter(vars)).rejects.toThrow(OF_OTHER)
  expect((await listRouterShards(vars)).map(({ problem }) => problem)).toEqual(BOTH)
  await swap(a, b)
  await (await serveRouter(vars)).close()
}, 60_000)
