import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { RefusedError } from '../../shared/host/refused-error.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeEnv } from '../env.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { type Checked, checkStore, recordsOf } from './check-receipts.ts'
import { makeDataFolder, openStore } from './open.ts'

type Vars = Record<string, string | undefined>

/** One file with everything that is committed at this moment, while the service runs. It holds no master key. */
export async function backUp(vars: Vars, file: string): Promise<number> {
  const env = readEnv(runtimeEnv, vars)
  if (await stat(file).catch(() => undefined)) throw new RefusedError(`${file} is there already: name another file`)
  const db = await openStore(env, { create: false })
  const part = `${file}.part`
  try {
    if (db.kind === 'remote') {
      throw new EnvError('PLATFORM_DATABASE_URL names a server: back it up with the server’s own means')
    }
    await rm(part, { force: true })
    await db.execute({ sql: 'vacuum into ?', args: [part] })
    await chmod(part, 0o600)
    // Complete, or not there at all.
    await rename(part, file)
    return (await stat(file)).size
  } finally {
    db.close()
  }
}

/** Puts a backup in the place of a store that is not there, after every receipt in it was checked. */
export async function restore(vars: Vars, file: string, { force }: { force: boolean }): Promise<Checked> {
  const env = readEnv(runtimeEnv, vars)
  if (env.PLATFORM_DATABASE_URL !== undefined) {
    throw new EnvError('a backup is restored into PLATFORM_DATA_DIR: leave PLATFORM_DATABASE_URL out')
  }
  await makeDataFolder(env.PLATFORM_DATA_DIR)
  const place = join(env.PLATFORM_DATA_DIR, 'waybill.db')
  for (const name of [place, `${place}-wal`]) {
    if (await stat(name).catch(() => undefined)) {
      throw new RefusedError(
        `${name} is there already: stop the service and move it away, or restore into another folder`,
      )
    }
  }
  const part = `${place}.part`
  await rm(part, { force: true })
  // What a running store has not yet moved into its file would be lost without a word.
  const wal = await stat(`${file}-wal`).catch(() => undefined)
  if (wal && wal.size > 0) {
    throw new RefusedError(
      `${file} belongs to a store in use (there is a ${file}-wal): make a backup with \`runtime backup\``,
    )
  }
  const from = await openDb(file, { readOnly: true })
  from.close()
  await copyFile(file, part)
  await chmod(part, 0o600)
  const db = await openDb(part)
  let checked: Checked
  try {
    await migrate(db, 'runtime', runtimeSteps)
    checked = await checkStore(db, await recordsOf(vars, db))
  } catch (error) {
    db.close()
    await remove(part)
    throw error
  }
  db.close()
  if (checked.broken.length > 0 && !force) {
    await remove(part)
    return checked
  }
  await rename(part, place)
  await rm(`${part}-wal`, { force: true })
  await rm(`${part}-shm`, { force: true })
  return checked
}

async function remove(path: string): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
}
