import { fromBase64, toBase64, toHex } from '../../shared/sign/bytes.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { dataKeys } from '../schema/tables.ts'
import { checkMasterKey } from './canary.ts'
import type { SealedColumn } from './rotate.ts'
import { type Vault, type VaultAad, VaultError } from './vault.ts'

export interface DataKey {
  id: string
  key: Uint8Array
}

export interface DataKeys {
  /** What is sealed from now on. */
  current: DataKey
  all: ReadonlyMap<string, DataKey>
}

const dataKeyAad = (id: string): VaultAad => ({ tenantId: 'platform', recordId: id, field: 'dataKey' })

export const DATA_KEY_SEALED: SealedColumn = {
  table: 'data_keys',
  column: 'sealed',
  key: ['id'],
  aadOf: ({ id }) => dataKeyAad(String(id)),
}

/** The data keys of a store, of which the first process to start makes the first; refuses under another master key. */
export async function openDataKeys(db: Db, vault: Vault, nowMs: number, otherKey?: string): Promise<DataKeys> {
  await checkMasterKey(db, vault, otherKey)
  const id = toHex(crypto.getRandomValues(new Uint8Array(4)))
  const fresh = crypto.getRandomValues(new Uint8Array(32))
  const [, found] = await db.write([
    {
      sql: `insert into data_keys (id, sealed, created_ms) select ?1, ?2, ?3 where not exists (select 1 from data_keys)`,
      args: [id, await vault.seal(toBase64(fresh), dataKeyAad(id)), nowMs],
    },
    'select id, sealed from data_keys order by created_ms, id',
  ])
  const keys: DataKey[] = []
  for (const { id, sealed } of rowsOf<Omit<RowOf<typeof dataKeys>, 'created_ms'>>(found!)) {
    keys.push({ id, key: fromBase64(await vault.open(sealed, dataKeyAad(id))) })
  }
  const current = keys.at(-1)
  if (!current) throw new Error('the store has no data key')
  return { current, all: new Map(keys.map(one => [one.id, one])) }
}

/** For a process that can open none: refuses a store that has sealed data. */
export async function refuseSealed(db: Db, lacking: string): Promise<void> {
  const { rows } = await db.execute('select 1 from data_keys limit 1')
  if (rows.length > 0) throw new VaultError('other_key', `the run data of this store is sealed: ${lacking}`)
}
