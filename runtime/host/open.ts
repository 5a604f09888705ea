import { access, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EnvError } from '../../shared/env/read-env.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { openWithWriteThread } from '../../shared/host/write-thread.ts'
import type { Db } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-fault.ts'
import type { RuntimeEnv } from '../env.ts'

/**
 * Opens the control plane's store: PLATFORM_DATABASE_URL, or a file in the data folder, which is made private. Only what begins a store may
 * create one: a command in the wrong folder would leave an empty one and report on that.
 */
export async function openStore(env: RuntimeEnv, { create }: { create: boolean }): Promise<Db> {
  const { url, ...options } = await storeAddress(env, create)
  return openDb(url, options)
}

/**
 * The same for a service. Where it is a file, a thread makes its commits; when that ends by itself, it is not known what it had written, so the service
 * ends too, and goes on from the store when it is started again.
 */
export async function openServedStore(env: RuntimeEnv, lost: (why: string) => void): Promise<Db> {
  const { url, ...options } = await storeAddress(env, true)
  return openWithWriteThread(url, { ...options, lost })
}

async function storeAddress(env: RuntimeEnv, create: boolean): Promise<{ url: string; token?: string }> {
  refuseDirectory(env)
  const token = env.PLATFORM_DATABASE_TOKEN
  if (env.PLATFORM_DATABASE_URL !== undefined) return { url: env.PLATFORM_DATABASE_URL, ...(token && { token }) }
  const file = join(env.PLATFORM_DATA_DIR, 'waybill.db')
  if (create) await makeDataFolder(env.PLATFORM_DATA_DIR)
  else await access(file).catch(refuseMissing(file))
  return { url: file }
}

/**
 * What a store that is about to be opened says if it lacks its log. A process that is killed leaves the log beside the file; one that ends lets go
 * of its runs, and the log goes with it.
 */
export async function lostLogOf({
  PLATFORM_DATABASE_URL: url,
  PLATFORM_DATA_DIR: folder,
}: RuntimeEnv): Promise<(db: Db) => Promise<string | undefined>> {
  const file = join(folder, 'waybill.db')
  const isThere = async (path: string) => (await stat(path).catch(() => undefined)) !== undefined
  if (url !== undefined || !(await isThere(file)) || (await isThere(`${file}-wal`))) return async () => undefined
  return async db => {
    // Before its tables are made there is no run.
    const found = await db.execute('select count(*) as runs from runs where owner is not null').catch(() => undefined)
    const runs = Number(found?.rows[0]?.runs ?? 0)
    if (runs === 0) return undefined
    return `runs were under way (${runs}), and there is no ${file}-wal: it was restored, or copied without its -wal, which has the last commits. What its runs and schedules did since is done and paid again: stop, and put the -wal beside it; \`runtime backup\` copies a store whole`
  }
}

/** Shards are those of a directory: without one the list would have no say. */
export function refuseShards({ PLATFORM_SHARDS: shards, PLATFORM_DIRECTORY_URL: url }: RuntimeEnv): void {
  if (shards.length === 0 || url !== undefined) return
  throw new EnvError(
    'PLATFORM_SHARDS names shards, and there is no directory of them: set PLATFORM_DIRECTORY_URL, or leave PLATFORM_SHARDS out',
  )
}

/** A store beside the shards would look like all that there is. */
function refuseDirectory({ PLATFORM_DIRECTORY_URL: url }: RuntimeEnv): void {
  if (url === undefined) return
  throw new EnvError(
    'PLATFORM_DIRECTORY_URL is set, so that this installation has no store of its own: name one of its databases in PLATFORM_DATABASE_URL, and leave PLATFORM_DIRECTORY_URL out',
  )
}

const refuseMissing = (file: string) => (cause: unknown) => {
  if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') return
  throw new DbOpenError(
    'missing',
    `There is no store at ${file}: name its folder in PLATFORM_DATA_DIR, or start a service there first.`,
  )
}

/** The read replica that PLATFORM_DATABASE_REPLICA_URL names; undefined without one. */
export async function openReplicaStore(env: RuntimeEnv): Promise<Db | undefined> {
  const { PLATFORM_DATABASE_REPLICA_URL: url, PLATFORM_DATABASE_TOKEN: token } = env
  return url === undefined ? undefined : openDb(url, { readOnly: true, ...(token && { token }) })
}

export async function makeDataFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder, 0o700)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new DbOpenError(
      'no_permission',
      `Cannot create the data folder ${folder}: ${reason}. Set PLATFORM_DATA_DIR to a folder that this account may write to.`,
      { cause },
    )
  }
}
