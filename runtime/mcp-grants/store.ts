import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { RefreshStore } from '../connectors/oauth/refresher.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { mcpGrants } from '../schema/tables.ts'
import { type Grant, toGrant } from './grant.ts'

type Stored = RowOf<typeof mcpGrants>

export type GrantStore = ReturnType<typeof grantStore>

export function grantStore(db: Db) {
  async function of(tenantId: string, resource: string): Promise<Grant | undefined> {
    const sql = 'select * from mcp_grants where tenant_id = ? and resource = ?'
    const [row] = rowsOf<Stored>(await db.execute({ sql, args: [tenantId, resource] }))
    return row && toGrant(row)
  }

  const refreshing: RefreshStore<Grant> = {
    now: ({ tenantId, resource }) => of(tenantId, resource),

    async claimRefresh({ id, revision }, nowMs, untilMs) {
      const { rowsAffected } = await db.execute({
        sql: `update mcp_grants set refresh_until_ms = ?1
where id = ?2 and revision = ?3 and (refresh_until_ms is null or refresh_until_ms <= ?4)`,
        args: [untilMs, id, revision, nowMs],
      })
      return rowsAffected === 1
    },

    async releaseRefresh({ id, revision }) {
      const sql = 'update mcp_grants set refresh_until_ms = null where id = ? and revision = ?'
      await db.execute({ sql, args: [id, revision] })
    },

    async renew({ id, revision }, { sealed, expiresMs, nowMs }) {
      const found = await db.execute({
        sql: `update mcp_grants set sealed = ?1, expires_ms = ?2, status = 'installed', revision = revision + 1,
  refresh_until_ms = null, updated_ms = ?3 where id = ?4 and revision = ?5 returning *`,
        args: [sealed, expiresMs ?? null, nowMs, id, revision],
      })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toGrant(rows[0])
    },

    async mark({ id, revision }, status, nowMs) {
      await db.execute({
        sql: 'update mcp_grants set status = ?, updated_ms = ? where id = ? and revision = ? and status <> ?',
        args: [status, nowMs, id, revision, status],
      })
    },
  }

  return {
    of,
    refreshing,

    /** Puts a grant in the place of whatever there was for this server; its id stays. */
    async keep(given: Omit<Grant, 'revision' | 'createdMs' | 'status'>): Promise<Grant> {
      const { tenantId, resource, id, issuer, scope, sealed, expiresMs, updatedMs } = given
      const found = await db.execute({
        sql: `insert into mcp_grants (tenant_id, resource, id, issuer, scope, status, sealed, expires_ms, revision, created_ms, updated_ms)
values (?1, ?2, ?3, ?4, ?5, 'installed', ?6, ?7, 1, ?8, ?8)
on conflict (tenant_id, resource) do update set issuer = excluded.issuer, scope = excluded.scope, status = 'installed',
  sealed = excluded.sealed, expires_ms = excluded.expires_ms, revision = revision + 1, refresh_until_ms = null,
  updated_ms = excluded.updated_ms
returning *`,
        args: [
          ...[tenantId, resource, id, JSON.stringify(issuer), scope === undefined ? null : JSON.stringify(scope)],
          ...[sealed, expiresMs ?? null, updatedMs],
        ],
      })
      const rows = rowsOf<Stored>(found)
      return toGrant(rows[0]!)
    },

    async byId(id: string): Promise<Grant | undefined> {
      const found = await db.execute({ sql: 'select * from mcp_grants where id = ?', args: [storableText(id)] })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toGrant(rows[0])
    },

    async list(tenantId: string, page: PageOf): Promise<Grant[]> {
      const { where, order, args } = pageSql(page)
      const sql = `select * from mcp_grants where tenant_id = ? ${where} ${order}`
      return readPage(page, rowsOf<Stored>(await db.execute({ sql, args: [tenantId, ...args] })), toGrant)
    },

    async remove({ id }: Grant): Promise<boolean> {
      return (await db.execute({ sql: 'delete from mcp_grants where id = ?', args: [id] })).rowsAffected === 1
    },
  }
}
