import { join } from 'node:path'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { copyOf, refuseExisting } from '../../shared/host/copy-file.ts'
import { runtimeEnv } from '../env.ts'
import { makeDataFolder, openStore } from './open.ts'
import { type Restored, type RestoreOptions, restoreTo } from './store-files.ts'

type Vars = Record<string, string | undefined>

/** One file with everything that is committed at this moment, while the service runs. It holds no master key. */
export async function backUp(vars: Vars, file: string): Promise<number> {
  const env = readEnv(runtimeEnv, vars)
  if (env.PLATFORM_DIRECTORY_URL !== undefined) return (await import('./shard-backup.ts')).backUpShards(env, file)
  await refuseExisting(file, 'file')
  const db = await openStore(env, { create: false })
  try {
    if (db.kind === 'remote') {
      throw new EnvError('PLATFORM_DATABASE_URL names a server: back it up with the server’s own means')
    }
    return await copyOf(db, file)
  } finally {
    db.close()
  }
}

/** Puts a backup in the place of a store that is not there, after every receipt in it was checked. */
export async function restore(vars: Vars, file: string, options: RestoreOptions): Promise<Restored> {
  const env = readEnv(runtimeEnv, vars)
  if (env.PLATFORM_DIRECTORY_URL !== undefined) {
    return (await import('./shard-backup.ts')).restoreShards(vars, file, options)
  }
  if (env.PLATFORM_DATABASE_URL !== undefined) {
    throw new EnvError('a backup is restored into PLATFORM_DATA_DIR: leave PLATFORM_DATABASE_URL out')
  }
  await makeDataFolder(env.PLATFORM_DATA_DIR)
  return restoreTo(vars, file, { ...options, place: join(env.PLATFORM_DATA_DIR, 'waybill.db') })
}
