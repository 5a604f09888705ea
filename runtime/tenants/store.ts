import type { InStatement } from '@libsql/client/web'
import { type Db, type RowOf, readRow, rowsOf, textIn } from '../../shared/sql/db.ts'
import { dbFault } from '../../shared/sql/db-fault.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { tenants } from '../schema/tables.ts'

export interface TenantRow {
  id: string
  name: string
  createdMs: number
}

/** Something that a tenant may still hold. `rows` is a select over `?1`, the tenant's id. */
export interface Holding {
  what: string
  rows: string
}

/** What stands in the way of a tenant's end. Keys that are revoked, and what was deleted, end with it. */
export const ACCESS_HOLDINGS: readonly Holding[] = [
  { what: 'active API keys', rows: 'select 1 from api_keys where tenant_id = ?1 and revoked_ms is null' },
  { what: 'agents', rows: 'select 1 from agents where tenant_id = ?1 and deleted_ms is null' },
  { what: 'users', rows: 'select 1 from users where tenant_id = ?1' },
]

type Stored = RowOf<typeof tenants>

export type TenantStore = ReturnType<typeof tenantStore>

/** `holdings` are those of every feature that keeps something of a tenant. */
export function tenantStore(db: Db, holdings: readonly Holding[] = ACCESS_HOLDINGS) {
  const empty = holdings.map(({ rows }) => `not exists (${rows})`).join(' and ')

  async function held(id: string): Promise<string[]> {
    const found = await db.read(holdings.map(({ rows }) => ({ sql: `select exists (${rows}) as held`, args: [id] })))
    return holdings.filter((_, at) => rowsOf<{ held: number }>(found[at]!)[0]?.held === 1).map(({ what }) => what)
  }

  return {
    insert({ id, name, createdMs }: TenantRow): InStatement {
      return {
        sql: 'insert into tenants (id, name, created_ms) values (?, ?, ?)',
        args: [id, JSON.stringify(name), createdMs],
      }
    },

    async get(id: string): Promise<TenantRow | undefined> {
      const found = await db.execute({ sql: 'select * from tenants where id = ?', args: [storableText(id)] })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toTenant(rows[0])
    },

    async list(page: PageOf): Promise<TenantRow[]> {
      const { where, order, args } = pageSql(page)
      const rows = rowsOf<Stored>(await db.execute({ sql: `select * from tenants where true ${where} ${order}`, args }))
      return readPage(page, rows, toTenant)
    },

    /** Removes an empty tenant, or answers what it still holds. One transaction, and its first statement fails for one that is not empty. */
    async remove(id: string): Promise<string[]> {
      const statements = [
        `update tenants set name = case when ${empty} then name end where id = ?1`,
        'delete from idempotency where tenant_id = ?1',
        'delete from api_keys where tenant_id = ?1',
        'delete from agent_versions where tenant_id = ?1',
        'delete from agents where tenant_id = ?1',
        'delete from tenants where id = ?1',
      ]
      try {
        await db.write(statements.map(sql => ({ sql, args: [id] })))
        return []
      } catch (error) {
        const still = dbFault(error) === 'statement' ? await held(id) : []
        if (still.length === 0) throw error
        return still
      }
    },
  }
}

function toTenant(row: Stored): TenantRow {
  return readRow(`tenant ${row.id}`, row, () => ({ id: row.id, name: textIn(row.name), createdMs: row.created_ms }))
}
