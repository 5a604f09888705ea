import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { RefusedError } from '../../shared/host/known-fault.ts'
import { nativeCurveKeys } from '../../shared/host/native-curve-keys.ts'
import { refuseToken } from '../../shared/host/shard-file.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../shared/log/log.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { clockOfStore } from '../../shared/sql/server-clock.ts'
import { nameShard } from '../../shared/sql/shard-name.ts'
import { newToken } from '../auth/dashboard/login-access.ts'
import { type RuntimeEnv, runtimeEnv, SHARD_NAME } from '../env.ts'
import { lastingValue } from '../lasting-value.ts'
import { keyStore } from '../receipts/key-store.ts'
import { signingKeys } from '../receipts/signing-keys.ts'
import { runtimeSteps } from '../schema/steps.ts'
import type { Directory, Shard } from '../shards/directory.ts'
import { copyIdentity, foreignTenants, hasOwnDataKeys, tenantIds } from '../shards/identity.ts'
import { openDataKeys } from '../vault/data-keys.ts'
import { masterKey } from '../vault/master-key.ts'
import { vault } from '../vault/vault.ts'
import { masterKeyOf } from './master-key-file.ts'
import { openDirectory, openShardStore } from './open-shards.ts'

type Vars = Record<string, string | undefined>

/** Opens the directory for one act. */
export async function withDirectory<T>(
  vars: Vars,
  act: (shards: Directory, env: RuntimeEnv, db: Db) => Promise<T>,
): Promise<T> {
  const env = readEnv(runtimeEnv, vars)
  if (env.PLATFORM_DIRECTORY_URL === undefined) {
    throw new EnvError('set PLATFORM_DIRECTORY_URL: the database that says which shards there are')
  }
  const { db, shards } = await openDirectory(env)
  try {
    return await act(shards, env, db)
  } finally {
    await db.close()
  }
}

/** Does something with the store of each shard, one after the other. */
export async function eachShard<T>(
  env: RuntimeEnv,
  shards: readonly Shard[],
  act: (db: Db, shard: Shard) => Promise<T>,
  how: { create?: boolean } = {},
): Promise<T[]> {
  const results: T[] = []
  for (const shard of shards) {
    const db = await openShardStore(env, shard, how)
    try {
      results.push(await act(db, shard))
    } finally {
      await db.close()
    }
  }
  return results
}

/** A database as a further shard. The first may be the store of an installation; its keys become those of all. */
export async function addShard(vars: Vars, given: Pick<Shard, 'name' | 'url'>): Promise<{ tenants: number }> {
  const { name, url } = given
  if (!SHARD_NAME.test(name))
    throw new RefusedError(`a shard is named with letters, digits and - in lower case; "${name}" is not`)
  refuseToken(url, 'PLATFORM_DATABASE_TOKEN')
  return withDirectory(vars, async (shards, env) => {
    const known = await shards.shards()
    const other = known.find(one => one.name === name || one.url === url)
    if (other) throw new RefusedError(`shard ${other.name} is there already, at ${other.url}`)
    const [first] = known
    const made = async (db: Db): Promise<string[]> => {
      await migrate(db, 'runtime', runtimeSteps)
      if (first) {
        await eachShard(env, [first], from => refuseUsed(from, db, url))
        await nameShard(db, 'runtime_meta', given, known)
        await eachShard(env, [first], from => copyIdentity(from, db))
        return []
      }
      await makeIdentity(env, db)
      await nameShard(db, 'runtime_meta', given)
      return tenantIds(db)
    }
    const tenants = await eachShard(env, [{ ...given, state: 'open' }], made, { create: true })
    await shards.add({ name, url, state: 'open' }, Date.now())
    const own = tenants.flat()
    for (const tenantId of own) await shards.learn({ tenantId, shard: name })
    return { tenants: own.length }
  })
}

async function refuseUsed(from: Db, db: Db, url: string): Promise<void> {
  const [tenant] = await foreignTenants(db)
  if (tenant !== undefined) {
    throw new RefusedError(
      `the database at ${url} is in use, by tenant ${tenant}: give an empty one. Only the first shard may be a store with tenants`,
    )
  }
  if (await hasOwnDataKeys(from, db)) {
    throw new RefusedError(`the database at ${url} was sealed under data keys of its own: give an empty one`)
  }
}

/** What every shard has in common, made where an installation begins with this one. */
async function makeIdentity(env: RuntimeEnv, db: Db): Promise<void> {
  const box = vault(await masterKey(await masterKeyOf(env, silentLog())))
  await openDataKeys(db, box, Date.now())
  await lastingValue(db, 'embedded_node', uuidv7)()
  await lastingValue(db, 'device_secret', newToken)()
  const { signer } = nativeCurveKeys
  const keys = keyStore(db)
  const sealing = async () => box
  const clock = await clockOfStore(db)
  await signingKeys({ keys, sealing, signer, clock, seed: env.PLATFORM_RECEIPT_KEY }).current()
}

export interface ListedShard extends Shard {
  tenants: number
  runs: number | undefined
  /** Undefined where it answers. */
  problem: string | undefined
}

/** The shards, and whether each answers. */
export async function listShards(vars: Vars): Promise<ListedShard[]> {
  return withDirectory(vars, async (shards, env) => {
    const counts = await shards.counts()
    const found: ListedShard[] = []
    for (const shard of await shards.shards()) {
      const listed = { ...shard, tenants: counts.get(shard.name) ?? 0 }
      try {
        const [runs] = await eachShard(
          env,
          [shard],
          async db => rowsOf<{ n: number }>(await db.execute('select count(*) as n from runs'))[0]!.n,
        )
        found.push({ ...listed, runs, problem: undefined })
      } catch (error) {
        found.push({ ...listed, runs: undefined, problem: error instanceof Error ? error.message : String(error) })
      }
    }
    return found
  })
}

/** A closed shard gets no new tenants; those that it has stay. */
export async function setShardState(vars: Vars, name: string, state: Shard['state']): Promise<void> {
  const changed = await withDirectory(vars, shards => shards.setState(name, state))
  if (!changed) throw new RefusedError(`there is no shard ${name}: see \`runtime shards list\``)
}
