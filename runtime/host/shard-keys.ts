import { RefusedError } from '../../shared/host/known-fault.ts'
import type { Db } from '../../shared/sql/db.ts'
import { keyStore } from '../auth/keys/store.ts'
import type { RuntimeEnv } from '../env.ts'
import { copyReceiptKeys } from '../shards/identity.ts'
import { openDirectory, openShardStore } from './open-shards.ts'
import { eachShard } from './shard-admin.ts'
import { chestOf, type KeyChest, revokeReceiptKey } from './store-keys.ts'

/** The keys of an installation with shards: API keys where their tenants are, and one key for receipts in all of them. */
export async function shardKeyChest(env: RuntimeEnv): Promise<KeyChest> {
  const { db: directoryDb, shards } = await openDirectory(env)

  async function inShardOf<T>(tenantId: string, act: (chest: ReturnType<typeof chestOf>) => Promise<T>): Promise<T> {
    const place = await shards.shardOf(tenantId)
    const shard = (await shards.shards()).find(({ name }) => name === place?.shard)
    if (shard === undefined) throw new RefusedError(`there is no tenant with the id ${tenantId}`)
    const db = await openShardStore(env, shard)
    try {
      return await act(chestOf(env, db))
    } finally {
      await db.close()
    }
  }

  /** All of them are reached before any of them is changed. */
  async function inEach<T>(act: (first: Db, all: readonly Db[]) => Promise<T>): Promise<T> {
    const open: Db[] = []
    try {
      for (const shard of await shards.shards()) open.push(await openShardStore(env, shard))
      const [first] = open
      if (first === undefined) throw new RefusedError('the directory has no shard: add one with `runtime shards add`')
      return await act(first, open)
    } finally {
      for (const db of open) await db.close()
    }
  }

  return {
    create: order => inShardOf(order.tenantId, chest => chest.create(order)),
    list: tenantId => inShardOf(tenantId, chest => chest.list(tenantId)),
    async revoke(id) {
      // A copy that a move has left knows the key as well, and whose it is.
      const found = await eachShard(env, await shards.shards(), async db => (await keyStore(db).get(id))?.tenantId)
      const tenantId = found.find(one => one !== undefined)
      if (tenantId === undefined) return inEach((_, all) => revokeReceiptKey(all, id))
      await inShardOf(tenantId, chest => chest.revoke(id))
    },
    rotateReceiptKey: () =>
      inEach(async (first, all) => {
        const id = await chestOf(env, first).rotateReceiptKey()
        for (const db of all.slice(1)) await copyReceiptKeys(first, db)
        return id
      }),
    close: () => directoryDb.close(),
  }
}
