import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { type Compacted, compactFile } from '../../shared/host/compact-file.ts'
import { copyOf, refuseExisting } from '../../shared/host/copy-file.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
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

/** Gives the room that deleted runs left back to the disk; how large the store was and is. */
export async function compact(vars: Record<string, string | undefined>): Promise<Compacted> {
  const env = readEnv(runtimeEnv, vars)
  const db = await openStore(env, { create: false })
  try {
    if (db.kind === 'remote') {
      throw new EnvError('PLATFORM_DATABASE_URL names a server: compact it with the server’s own means')
    }
    await mergeSearch(db)
    return await compactFile(db)
  } finally {
    await db.close()
  }
}

/** Pages of the index that one transaction writes. */
const PAGES = 256

/** Words of deleted runs stay in the parts of the search index until these are merged: into one part, some pages at a time, as `compactFile` works. */
async function mergeSearch(db: Db): Promise<void> {
  const written = 'select total_changes() as n'
  for (let pages = -PAGES; ; pages = PAGES) {
    const began = performance.now()
    const merge = { sql: "insert into run_search (run_search, rank) values ('merge', ?)", args: [pages] }
    const [before, , after] = await db.write([written, merge, written])
    // One is the statement itself: nothing was left to merge.
    if (rowsOf<{ n: number }>(after!)[0]!.n - rowsOf<{ n: number }>(before!)[0]!.n < 2) return
    await pause(performance.now() - began)
  }
}
