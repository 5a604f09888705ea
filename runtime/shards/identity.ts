import type { InStatement } from '@libsql/client/web'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import type { Directory, Shard } from './directory.ts'
import { insertRows, type Row } from './rows.ts'

/**
 * What all shards of an installation have in common, so that a tenant is the same in each of them: the keys that run data is sealed under,
 * those that receipts are signed with, the id of the embedded node, and the secret by which browsers are known.
 */
const COMMON: readonly { table: string; key: string; where?: string }[] = [
  { table: 'runtime_meta', key: 'key', where: "key in ('embedded_node', 'device_secret', 'master_key_canary')" },
  { table: 'data_keys', key: 'id' },
]

/** Gives a new shard what the others have. Told again, it changes nothing. */
export async function copyIdentity(from: Db, to: Db): Promise<void> {
  const statements: InStatement[] = []
  for (const { table, key, where = 'true' } of COMMON) {
    const rows = rowsOf<Row>(await from.execute(`select * from ${table} where ${where} order by ${key}`))
    statements.push(...insertRows({ table, key: [key] }, rows))
  }
  await to.write(statements)
  await copyReceiptKeys(from, to)
}

/** The receipt keys of one shard become those of another: which one is in use, and until when the others were. */
export async function copyReceiptKeys(from: Db, to: Db): Promise<void> {
  const rows = rowsOf<Row>(await from.execute("select * from receipt_keys order by status = 'active', key_id"))
  if (rows.length === 0) return
  await to.write([
    // One is in use at a time.
    "update receipt_keys set status = 'retired' where status = 'active'",
    ...insertRows({ table: 'receipt_keys', key: ['key_id'] }, rows),
  ])
}

/** What receipts of a moved tenant are verified with, where the new place does not have it; the key in use there stays. */
export async function lendReceiptKeys(from: Db, to: Db, nowMs: number): Promise<void> {
  const rows = rowsOf<Row>(await from.execute('select * from receipt_keys order by key_id'))
  const known = new Set(
    rowsOf<{ key_id: string }>(await to.execute('select key_id from receipt_keys')).map(({ key_id }) => key_id),
  )
  const lent = rows.flatMap(row => {
    if (known.has(String(row.key_id))) return []
    return [row.status === 'active' ? { ...row, status: 'retired', not_after_ms: nowMs + LENT_MS } : row]
  })
  await to.write(insertRows({ table: 'receipt_keys', key: ['key_id'] }, lent))
}

/** A move ends within it. */
const LENT_MS = 86_400_000

/** Whether a store has data keys that the others do not have: what is sealed under them would not open elsewhere. */
export async function hasOwnDataKeys(from: Db, db: Db): Promise<boolean> {
  const ids = async (of: Db) => rowsOf<{ id: string }>(await of.execute('select id from data_keys')).map(({ id }) => id)
  const known = new Set(await ids(from))
  return (await ids(db)).some(id => !known.has(id))
}

export async function tenantIds(db: Db): Promise<string[]> {
  return rowsOf<{ id: string }>(await db.execute('select id from tenants order by created_ms, id')).map(({ id }) => id)
}

/** Tenants that the directory places in a shard and that its store has not. */
export async function missingTenants(known: Directory, db: Db, { name }: Shard): Promise<string[]> {
  const there = new Set(await tenantIds(db))
  return (await known.tenantsIn(name)).filter(id => !there.has(id))
}

/** Tenants that have something in a store, beside the first one, with which every store begins. */
export async function foreignTenants(db: Db): Promise<string[]> {
  const used = 'exists (select 1 from agents union all select 1 from users union all select 1 from api_keys)'
  const others = (await tenantIds(db)).filter(id => id !== FIRST_TENANT)
  if (others.length > 0) return others
  const { rows } = await db.execute(`select 1 where ${used}`)
  return rows.length > 0 ? [FIRST_TENANT] : []
}
