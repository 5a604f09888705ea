import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EnvError, readEnv } from '../../shared/env/read-env.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { RefusedError } from '../../shared/host/refused-error.ts'
import { silentLog } from '../../shared/log/log.ts'
import { walkFault } from '../../shared/proof/receipt-proof.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeEnv } from '../env.ts'
import { checkReceipt } from '../receipts/check-receipt.ts'
import { checkRecord } from '../receipts/check-record.ts'
import { keyStore } from '../receipts/key-store.ts'
import { statementOf } from '../receipts/payload.ts'
import { receiptStore } from '../receipts/store.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { openDataKeys, refuseSealed } from '../vault/data-keys.ts'
import { masterKey } from '../vault/master-key.ts'
import { clearRecords, type Records, sealedRecords } from '../vault/records.ts'
import { vault } from '../vault/vault.ts'
import { masterKeyOf } from './master-key-file.ts'
import { nativeCipher } from './native-cipher.ts'
import { makeDataFolder, openStore } from './open.ts'

type Vars = Record<string, string | undefined>

/** What a store was found to be: every receipt checked against the run and the journal beside it. */
export interface Checked {
  receipts: number
  /** The first ones that do not hold, with the reason. */
  broken: string[]
}

const PAGE = 500
const MOST_TOLD = 20

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

async function recordsOf(vars: Vars, db: Db): Promise<Records> {
  const env = readEnv(runtimeEnv, vars)
  const { rows } = await db.execute('select 1 from data_keys limit 1')
  if (rows.length === 0) return clearRecords
  const given = env.PLATFORM_MASTER_KEY ?? env.PLATFORM_MASTER_KEY_FILE
  if (given === undefined && !(await stat(join(env.PLATFORM_DATA_DIR, 'master.key')).catch(() => undefined))) {
    const where = `put it at ${join(env.PLATFORM_DATA_DIR, 'master.key')}, or name it in PLATFORM_MASTER_KEY_FILE`
    await refuseSealed(db, `its master key is not part of a backup; ${where}`)
  }
  const box = vault(await masterKey(await masterKeyOf(env, silentLog())))
  return sealedRecords(nativeCipher, await openDataKeys(db, box, Date.now()))
}

/** Every receipt against the run and the journal that stand beside it. */
async function checkStore(db: Db, records: Records): Promise<Checked> {
  const store = receiptStore(db, records, nativeSha256)
  const listed = await keyStore(db).list()
  const checked: Checked = { receipts: 0, broken: [] }
  for (let after = ''; ; ) {
    const found = await db.execute({
      sql: 'select run_id from receipts where run_id > ? order by run_id limit ?',
      args: [after, PAGE],
    })
    const rows = rowsOf<{ run_id: string }>(found)
    for (const { run_id: runId } of rows) {
      after = runId
      checked.receipts++
      const problem = await problemOf(runId)
      if (problem !== undefined && checked.broken.length < MOST_TOLD) checked.broken.push(`run ${runId}: ${problem}`)
    }
    if (rows.length < PAGE) return checked
  }

  async function problemOf(runId: string): Promise<string | undefined> {
    const found = await store.find(runId)
    if (!found) return undefined
    const signed = await checkReceipt(found.receipt, listed)
    if (!signed.ok) return signed.reason
    // The receipt of a run that was deleted stays, and there is nothing to hold against it.
    const stored = await store.stored(runId)
    if (!stored) return undefined
    const statement = statementOf(stored.facts, nativeSha256)
    return walkFault(stored.walk, signed.payload)?.reason ?? checkRecord(signed.payload, statement, stored.inputDropped)
  }
}
