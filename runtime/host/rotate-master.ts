import { link, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { RefusedError } from '../../shared/host/known-fault.ts'
import { putInPlace } from '../../shared/host/operator-file.ts'
import { writerIsGone, writerName, writerText } from '../../shared/host/writer-name.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { clockOfStore } from '../../shared/sql/server-clock.ts'
import { type RuntimeEnv, runtimeEnv } from '../env.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { keyLeases } from '../vault/key-leases.ts'
import { masterKey } from '../vault/master-key.ts'
import { rotateMasterKey } from '../vault/rotate.ts'
import { vault } from '../vault/vault.ts'
import { makeKeyFile, masterKeyOf, readKeyFile } from './master-key-file.ts'
import { openStore } from './open.ts'
import { SEALED_COLUMNS } from './sealed-columns.ts'

export interface Rotated {
  wrapped: number
  /** Where the key is that the services are to be started with. */
  keyFile: string
  /** Where the old key was put; only where it was this program that kept it. */
  oldKeyFile?: string
}

/** A rotation takes seconds; if its machine dies in it, services of other machines can start after this long. */
const ROTATION_MS = 300_000

/**
 * Moves a store to another master key. Whatever it dies over, running it again completes it: the new key is on the disk before
 * anything is sealed under it, the store changes in one transaction, and only then does the new key take the old one's place.
 */
export async function rotateMaster(
  vars: Record<string, string | undefined>,
  { to, onWrapped }: { to: string | undefined; onWrapped?: () => void | Promise<void> },
): Promise<Rotated> {
  const env = readEnv(runtimeEnv, vars)
  const ours = env.PLATFORM_MASTER_KEY === undefined && env.PLATFORM_MASTER_KEY_FILE === undefined
  if (!ours && to === undefined) {
    throw new EnvError('the master key comes from the environment: say with --to which file holds the new one')
  }
  const place = join(env.PLATFORM_DATA_DIR, 'master.key')
  if (ours && !(await stat(place).catch(() => undefined))) {
    throw new RefusedError(`there is no master key in ${env.PLATFORM_DATA_DIR}: nothing was sealed there yet`)
  }
  const old = await masterKey(await masterKeyOf(env, silentLog()))
  const file = to ?? `${place}.next`
  const next = await masterKey(
    (await makeKeyFile(file)) ?? (await readKeyFile('the new master key', file, silentLog())),
  )
  if (next.id === old.id) throw new RefusedError(`${file} holds the master key that is in use already`)
  const stores = await storesOf(env)
  try {
    for (const store of stores) await store.hold()
    let wrapped = 0
    for (const { db } of stores) wrapped += await rotateMasterKey(db, vault(next, [old]), SEALED_COLUMNS)
    await onWrapped?.()
    if (!ours || to !== undefined) return { wrapped, keyFile: file }
    const oldKeyFile = `${place}.${old.id}`
    // Never a moment without a key in its place: a service that starts then would make one.
    await link(place, oldKeyFile).catch((cause: unknown) => {
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause
    })
    await putInPlace(file, place)
    return { wrapped, keyFile: place, oldKeyFile }
  } finally {
    for (const store of stores) await store.close()
  }
}

/** The store of an installation, or each of its shards; none is changed before all of them are held. */
async function storesOf(env: RuntimeEnv) {
  if (env.PLATFORM_DIRECTORY_URL === undefined) return [await held(await openStore(env, { create: false }))]
  const { openDirectory, openShardStore } = await import('./open-shards.ts')
  const { db, shards } = await openDirectory(env)
  const open: Awaited<ReturnType<typeof held>>[] = []
  try {
    for (const shard of await shards.shards()) open.push(await held(await openShardStore(env, shard), shard.name))
    return open
  } catch (error) {
    for (const store of open) await store.close()
    throw error
  } finally {
    await db.close()
  }
}

async function held(db: Db, shard?: string) {
  const holder = writerName()
  const clock = await clockOfStore(db)
  const leases = keyLeases({ db, clock, holder, leaseMs: ROTATION_MS, isGone: writerIsGone })
  return {
    db,
    async hold(): Promise<void> {
      await migrate(db, 'runtime', runtimeSteps)
      const other = await leases.take('rotate')
      if (other === undefined) return
      const until = new Date(other.untilMs).toISOString()
      const where = shard === undefined ? 'this store' : `shard ${shard}`
      const what = other.purpose === 'serve' ? `a service of ${where} is running` : 'another rotation is under way'
      throw new RefusedError(
        `${what}: ${writerText(other.holder)}. Stop every service of the store, then rotate; the lease of a process that died ends by itself, at the latest at ${until}`,
      )
    },
    async close(): Promise<void> {
      await leases.release().catch(() => undefined)
      await db.close()
    },
  }
}
