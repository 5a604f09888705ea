import { chmod, copyFile, rm, stat } from 'node:fs/promises'
import { RefusedError } from '../../shared/host/known-fault.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { putInPlace } from '../../shared/host/operator-file.ts'
import { damageOf } from '../../shared/sql/damage.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { GOES_ON, SET_ASIDE_RESTORED } from '../execution/claim-statement.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { type Checked, checkStore, recordsOf } from './check-receipts.ts'

type Vars = Record<string, string | undefined>

export interface RestoreOptions {
  force: boolean
  /** Runs that would go on are set aside. */
  hold: boolean
}

export interface Restored extends Checked {
  /** When a run last changed in it; undefined where it has none. */
  lastMs: number | undefined
  /** Runs that go on at the next start, from where the backup has them. */
  underWay: number
}

/** Puts one file in its place, once what is in it holds. */
export async function restoreTo(
  vars: Vars,
  file: string,
  { force, hold, place }: RestoreOptions & { place: string },
): Promise<Restored> {
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
  try {
    await refuseOther(from, file)
  } finally {
    from.close()
  }
  await copyFile(file, part)
  await chmod(part, 0o600)
  const db = await openDb(part)
  let restored: Restored
  try {
    await mendIndexes(db, file)
    await migrate(db, 'runtime', runtimeSteps)
    restored = { ...(await checkStore(db, await recordsOf(vars, db))), ...(await gapOf(db)) }
    if (hold) await db.execute({ sql: SET_ASIDE_RESTORED, args: [Date.now()] })
    // A connection that is closed may leave its log behind, which is not taken along.
    await db.execute('pragma wal_checkpoint(truncate)')
  } catch (error) {
    db.close()
    await remove(part)
    throw error
  }
  db.close()
  if (restored.broken.length > 0 && !force) {
    await remove(part)
    return restored
  }
  await putInPlace(part, place)
  await rm(`${part}-wal`, { force: true })
  await rm(`${part}-shm`, { force: true })
  return restored
}

/** What the backup cannot know: what happened after its last change, and what its open runs did then. */
async function gapOf(db: Db): Promise<Pick<Restored, 'lastMs' | 'underWay'>> {
  const found = await db.execute(
    `select max(updated_ms) as last, (select count(*) from runs where ${GOES_ON}) as open from runs`,
  )
  const [row] = rowsOf<{ last: number | null; open: number }>(found)
  return { lastMs: row?.last ?? undefined, underWay: row?.open ?? 0 }
}

/** An empty file is a database to SQLite, and of one that was cut off it reads what it is asked for. */
async function refuseOther(db: Db, file: string): Promise<void> {
  const steps = await db.execute("select 1 from sqlite_master where name = 'schema_steps'")
  const ofRuntime = steps.rows.length > 0 && (await db.execute("select 1 from schema_steps where part = 'runtime'"))
  if (!ofRuntime || ofRuntime.rows.length === 0) throw new RefusedError(`${file} is no backup of a runtime`)
  const [whole] = rowsOf<{ quick_check: string }>(await db.execute('pragma quick_check(1)'))
  if (whole?.quick_check !== 'ok') throw new RefusedError(`${file} is damaged: ${whole?.quick_check}`)
}

/** Rows that are whole, with an index that is not: a copy of the store takes it along as it is. */
async function mendIndexes(db: Db, file: string): Promise<void> {
  if ((await damageOf(db)) === undefined) return
  await db.execute('reindex')
  const damage = await damageOf(db)
  if (damage !== undefined) throw new RefusedError(`${file} is damaged: ${damage}`)
}

async function remove(path: string): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
}
