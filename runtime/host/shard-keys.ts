import { RefusedError } from '../../shared/host/known-fault.ts'
import type { Db } from '../../shared/sql/db.ts'
import { keyStore } from '../auth/keys/store.ts'
import type { RuntimeEnv } from '../env.ts'
import { copyReceiptKeys } from '../shards/identity.ts'
import { openDirectory, openShardStore } from './open-shards.ts'
import { eachShard } from './shard-admin.ts'
import { chestOf, type KeyChest } from './store-keys.ts'

/** The keys of an installation with shards: API keys where their tenants are, and one key for receipts in all of them. */
export async function shardKeyChest(env: RuntimeEnv): Promise<KeyChest> {
  const { db: directoryDb, shards } = await openDirectory(env)

  async function inShardOf<T>(tenantId: string, act: (chest: ReturnType<typeof chestOf>) => Promise<T>): Promise<T> {
    const place = await shards.placeOf(tenantId)
    const shard = (await shards.shards()).find(({ name }) => name === place?.shard)
    if (shard === undefined) throw new RefusedError(`there is no tenant with the id ${tenantId}`)
    const db = await openShardStore(env, shard)
    try {
      return await act(chestOf(env, db))
    } finally {
      await db.close()
    }
  }

  return {
    create: order => inShardOf(order.tenantId, chest => chest.create(order)),
    list: tenantId => inShardOf(tenantId, chest => chest.list(tenantId)),
    async revoke(id) {
      // A copy that a move has left knows the key as well, and whose it is.
      const found = await eachShard(env, await shards.shards(), async db => (await keyStore(db).get(id))?.tenantId)
      const tenantId = found.find(one => one !== undefined)
      if (tenantId === undefined) throw new RefusedError(`there is no API key with the id ${id}`)
      await inShardOf(tenantId, chest => chest.revoke(id))
    },
    async rotateReceiptKey() {
      const [first, ...others] = await shards.shards()
      if (first === undefined) throw new RefusedError('the directory has no shard: add one with `runtime shards add`')
      // All of them are reached before any of them is changed.
      const open: Db[] = []
      try {
        for (const shard of [first, ...others]) open.push(await openShardStore(env, shard))
        const id = await chestOf(env, open[0]!).rotateReceiptKey()
        for (const db of open.slice(1)) await copyReceiptKeys(open[0]!, db)
        return id
      } finally {
        for (const db of open) await db.close()
      }
    },
    close: () => directoryDb.close(),
  }
}
