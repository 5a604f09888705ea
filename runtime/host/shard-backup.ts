import { chmod, copyFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { copyOf, refuseExisting } from '../../shared/host/copy-file.ts'
import { RefusedError } from '../../shared/host/known-fault.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { putInPlace } from '../../shared/host/operator-file.ts'
import { filePath, isServer } from '../../shared/host/shard-file.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { type RuntimeEnv, runtimeEnv } from '../env.ts'
import { openDirectory, openShardStore } from './open-shards.ts'
import { type Restored, type RestoreOptions, restoreTo } from './store-files.ts'

const DIRECTORY = 'directory.db'

/**
 * A folder with a file for each shard and one for the directory. Those of a server are its own business, so a directory that names one is
 * refused: half a backup would look like a whole one. The directory comes last: where a tenant moves meanwhile, both copies of it are there.
 */
export async function backUpShards(env: RuntimeEnv, folder: string): Promise<number> {
  await refuseExisting(folder, 'folder')
  const { db: directoryDb, shards } = await openDirectory(env)
  try {
    const all = await shards.shards()
    const served = [...all, { name: 'the directory', url: env.PLATFORM_DIRECTORY_URL ?? '' }].filter(({ url }) =>
      isServer(url),
    )
    if (served.length > 0) {
      const names = served.map(({ name }) => name).join(', ')
      throw new EnvError(
        `${names}: on a libSQL server: back it up with the server’s own means, each shard and the directory`,
      )
    }
    if ((await shards.moves()).some(({ state }) => state !== 'switched')) {
      throw new RefusedError(
        'a tenant is being moved: finish that, or take it back with --back, and make the backup then',
      )
    }
    await makeFolder(folder, 0o700)
    let bytes = 0
    for (const shard of all) {
      const db = await openShardStore(env, shard)
      try {
        bytes += await copyOf(db, join(folder, `${shard.name}.db`))
      } finally {
        await db.close()
      }
    }
    return bytes + (await copyOf(directoryDb, join(folder, DIRECTORY)))
  } finally {
    await directoryDb.close()
  }
}

/** Puts each shard where the directory of the backup says, and the directory last: a service that starts before has no shards. */
export async function restoreShards(
  vars: Record<string, string | undefined>,
  folder: string,
  options: RestoreOptions,
): Promise<Restored> {
  const env = readEnv(runtimeEnv, vars)
  const place = filePath(env.PLATFORM_DIRECTORY_URL ?? '')
  if (isServer(place))
    throw new EnvError('PLATFORM_DIRECTORY_URL names a server: restore it with the server’s own means')
  const saved = await openDb(join(folder, DIRECTORY), { readOnly: true })
  const found = await saved.execute('select name, url from shards order by name')
  await saved.close()
  const all = rowsOf<{ name: string; url: string }>(found)
  for (const path of [place, ...all.map(({ url }) => filePath(url))]) {
    if (await stat(path).catch(() => undefined)) {
      throw new RefusedError(`${path} is there already: stop the services and move it away`)
    }
  }
  const checked: Restored = { receipts: 0, hold: 0, without: 0, broken: [], lastMs: undefined, underWay: 0 }
  let placed: string[] = []
  try {
    for (const { name, url } of all) {
      const one = await restoreTo(vars, join(folder, `${name}.db`), { ...options, place: filePath(url) })
      checked.receipts += one.receipts
      checked.hold += one.hold
      checked.without += one.without
      checked.underWay += one.underWay
      checked.lastMs = Math.max(checked.lastMs ?? 0, one.lastMs ?? 0) || undefined
      checked.broken.push(...one.broken.map(problem => `shard ${name}: ${problem}`))
      if (one.broken.length > 0 && !options.force) return checked
      placed.push(filePath(url))
    }
    // A part of it, which a full disk may leave, is no directory.
    await copyFile(join(folder, DIRECTORY), `${place}.part`)
    await chmod(`${place}.part`, 0o600)
    await putInPlace(`${place}.part`, place)
    placed = []
    return checked
  } finally {
    for (const path of placed) await rm(path, { force: true })
  }
}
