import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { rowsOfTenant, type Sides } from './copy-rows.ts'
import { MOVED, tenantOf } from './moved-tables.ts'

const COUNTED = MOVED.filter(({ expires }) => !expires)

/** How many rows of each table a database has of a tenant. */
async function countsOf(db: Db, tenantId: string): Promise<ReadonlyMap<string, number>> {
  const results = await db.read(
    COUNTED.map(table => ({
      sql: `select count(*) as n from ${table.table} where ${tenantOf(table, table.table)} = ?`,
      args: [tenantId],
    })),
  )
  return new Map(COUNTED.map(({ table }, at) => [table, rowsOf<{ n: number }>(results[at]!)[0]!.n]))
}

/** Where the copy is not what was copied: numbers of rows, the hashes of every journal, every receipt and the end of the audit log. */
export async function differences(sides: Sides): Promise<string[]> {
  const { from, to, tenantId } = sides
  const [here, there] = [await countsOf(from, tenantId), await countsOf(to, tenantId)]
  const found: string[] = []
  for (const [table, n] of here) {
    if (there.get(table) !== n) found.push(`${table} has ${n} rows, and ${there.get(table)} in the copy`)
  }
  for (const { table, columns } of HASHED) {
    const moved = MOVED.find(one => one.table === table)!
    const old = rowsOfTenant(from, { ...moved, columns }, tenantId)
    const copies = rowsOfTenant(to, { ...moved, columns }, tenantId)
    for (;;) {
      const [one, other] = [await old.next(), await copies.next()]
      if (JSON.stringify(one.value ?? []) !== JSON.stringify(other.value ?? [])) {
        found.push(`${table} is not the same in the copy`)
        break
      }
      if (one.done === true) break
    }
  }
  return found
}

/** The columns whose values stand for the rest of a row. */
const HASHED: readonly { table: string; columns: readonly string[] }[] = [
  { table: 'events', columns: ['run_id', 'seq', 'hash'] },
  { table: 'receipts', columns: ['run_id', 'envelope'] },
  { table: 'audit_log', columns: ['tenant_id', 'seq', 'hash'] },
  { table: 'audit_heads', columns: ['tenant_id', 'seq', 'hash'] },
]
