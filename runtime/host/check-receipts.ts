import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readEnv } from '../../shared/env/read-env.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { silentLog } from '../../shared/log/log.ts'
import { walkFault } from '../../shared/proof/receipt-proof.ts'
import { DamagedRowError, type Db, rowsOf } from '../../shared/sql/db.ts'
import { runtimeEnv } from '../env.ts'
import { hashedFacts } from '../nodes/runs/remote-run.ts'
import { remoteRunStore } from '../nodes/runs/remote-run-store.ts'
import { checkReceipt, checkRecord, checkRemoteRun } from '../receipts/check-receipt.ts'
import { keyStore } from '../receipts/key-store.ts'
import { statementFrom, statementOf } from '../receipts/payload.ts'
import { receiptStore } from '../receipts/store.ts'
import { openDataKeys, refuseSealed } from '../vault/data-keys.ts'
import { masterKey } from '../vault/master-key.ts'
import { clearRecords, type Records, sealedRecords } from '../vault/records.ts'
import { vault } from '../vault/vault.ts'
import { masterKeyOf } from './master-key-file.ts'

/** What a store was found to be: every receipt checked against the run and the journal beside it. */
export interface Checked {
  receipts: number
  /** How many of them hold. */
  hold: number
  /** Runs that ended and have none. */
  without: number
  /** The first ones that do not hold, with the reason. */
  broken: string[]
}

const PAGE = 500
const MOST_TOLD = 20
/** So many at a time, so that a server far away is not waited for once for each. */
const AT_ONCE = 8

export async function recordsOf(vars: Record<string, string | undefined>, db: Db): Promise<Records> {
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

/** Every receipt against the run and the journal that stand beside it, of the whole store, of a tenant, or of these runs. */
export async function checkStore(
  db: Db,
  records: Records,
  { tenantId, runIds }: { tenantId?: string; runIds?: readonly string[] } = {},
): Promise<Checked> {
  const problemOf = await receiptChecker(db, records)
  const checked: Checked = { receipts: 0, hold: 0, without: 0, broken: [] }
  async function check(ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE)
      const problems = await Promise.all(some.map(problemOf))
      checked.receipts += some.length
      for (const [one, problem] of problems.entries()) {
        if (problem === undefined) checked.hold++
        else if (checked.broken.length < MOST_TOLD) checked.broken.push(`run ${some[one]}: ${problem}`)
      }
    }
  }
  if (runIds) {
    await check(runIds)
    return checked
  }
  const whose = tenantId === undefined ? '' : 'and tenant_id = ?'
  const args = tenantId === undefined ? [] : [tenantId]
  const none = 'finished_ms is not null and not exists (select 1 from receipts where run_id = runs.id)'
  const [bare] = rowsOf<{ n: number }>(
    await db.execute({ sql: `select count(*) as n from runs where ${none} ${whose}`, args }),
  )
  checked.without = bare?.n ?? 0
  for (let after = ''; ; ) {
    const sql = `select run_id from receipts where run_id > ? ${whose} order by run_id limit ${PAGE}`
    const rows = rowsOf<{ run_id: string }>(await db.execute({ sql, args: [after, ...args] }))
    await check(rows.map(({ run_id }) => run_id))
    if (rows.length < PAGE) return checked
    after = rows.at(-1)!.run_id
  }
}

async function receiptChecker(db: Db, records: Records) {
  const store = receiptStore(db, records, nativeSha256)
  const remotes = remoteRunStore(db)
  const listed = await keyStore(db).list()
  async function problem(runId: string): Promise<string | undefined> {
    const found = await store.find(runId)
    if (!found) return undefined
    const signed = await checkReceipt(found.receipt, listed)
    if (!signed.ok) return signed.reason
    const stored = await store.stored(runId)
    if (!stored) {
      // The receipt of a run that was deleted stays, and there is nothing to hold against it.
      const remote = await remotes.get(runId)
      return remote?.headKnown ? checkRemoteRun(signed.payload, statementFrom(hashedFacts(remote))) : undefined
    }
    const statement = statementOf(stored.facts, nativeSha256)
    return walkFault(stored.walk, signed.payload)?.reason ?? checkRecord(signed.payload, statement, stored.inputDropped)
  }
  return async (runId: string): Promise<string | undefined> => {
    try {
      return await problem(runId)
    } catch (error) {
      if (error instanceof DamagedRowError) return error.message
      throw error
    }
  }
}
