import { join } from 'node:path'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { DbOpenError } from '../../shared/sql/db-open-error.ts'
import type { RuntimeEnv } from '../env.ts'

/** Opens the control plane's store: PLATFORM_DATABASE_URL, or a file in the data folder, which is made private. */
export async function openStore(env: RuntimeEnv): Promise<Db> {
  const token = env.PLATFORM_DATABASE_TOKEN
  if (env.PLATFORM_DATABASE_URL !== undefined) return openDb(env.PLATFORM_DATABASE_URL, { ...(token && { token }) })
  await makeDataFolder(env.PLATFORM_DATA_DIR)
  return openDb(join(env.PLATFORM_DATA_DIR, 'waybill.db'))
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
