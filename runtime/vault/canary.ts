import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { meta } from '../schema/tables.ts'
import type { SealedColumn } from './rotate.ts'
import { type Vault, VaultError } from './vault.ts'

const AAD = { tenantId: '', recordId: 'runtime_meta', field: 'master_key_canary' }

/** `runtime_meta` holds other things too, which are not sealed. */
export const CANARY_SEALED: SealedColumn = {
  table: 'runtime_meta',
  column: 'value',
  key: ['key'],
  where: `key = '${AAD.field}'`,
  aadOf: () => AAD,
}

const OTHER_KEY =
  'the master key is not the one this store was sealed under: bring that one back, or complete a rotation that was interrupted with `runtime keys rotate-master`'

/** What is wrong where a node has another key than its store. */
export const OTHER_NODE =
  'this store was sealed by a node with another node.json: bring that file back, or put the store aside, and with it what its runs were given and said'

/** Whether a process with a master key has ever opened this store. */
export async function isSealed(db: Db): Promise<boolean> {
  const { rows } = await db.execute("select 1 from sqlite_master where name = 'runtime_meta'")
  if (rows.length === 0) return false
  return (await db.execute({ sql: 'select 1 from runtime_meta where key = ?', args: [AAD.field] })).rows.length > 0
}

/**
 * Finds out at the start, rather than at the first use of a secret, that a store was sealed under another master key. The
 * first process to start leaves a text under its key; every later one must be able to open it.
 */
export async function checkMasterKey(db: Db, vault: Vault, otherKey = OTHER_KEY): Promise<void> {
  const [, found] = await db.write([
    {
      sql: 'insert into runtime_meta (key, value) values (?, ?) on conflict do nothing',
      args: [AAD.field, await vault.seal('canary', AAD)],
    },
    { sql: 'select value from runtime_meta where key = ?', args: [AAD.field] },
  ])
  try {
    await vault.open(rowsOf<Pick<RowOf<typeof meta>, 'value'>>(found!)[0]!.value, AAD)
  } catch (cause) {
    if (!(cause instanceof VaultError)) throw cause
    throw new VaultError(cause.problem, `${otherKey} (${cause.message})`, { cause })
  }
}
