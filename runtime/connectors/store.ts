import type { InStatement } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { type CustomId, connectorIds } from '../../shared/wire/runtime/catalog.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import type { connectorApis, connectors } from '../schema/tables.ts'
import { type Install, toInstall } from './install.ts'
import type { CompiledApi } from './openapi/compiled.ts'

export type NewInstall = Omit<Install, 'revision' | 'tested' | 'createdMs' | 'status'>

type Stored = RowOf<typeof connectors>

/** As many as the catalogue shows. */
const MOST_CUSTOM = 200
const IS_CUSTOM = "(connector_id >= 'http-' and connector_id < 'http.')"

export type ConnectorStore = ReturnType<typeof connectorStore>

export function connectorStore(db: Db) {
  return {
    ...installedCredentials(db),

    /** Installs, or puts new credentials in the place of the old ones and keeps id and date. The row is in the last result. */
    async install(given: NewInstall, also: readonly InStatement[]): Promise<Install> {
      const { tenantId, connectorId, id, displayName, method, config, missing, sealed, baseUrl, expiresMs, updatedMs } =
        given
      const [made] = await db.write([
        {
          sql: `insert into connectors (tenant_id, connector_id, id, display_name, auth_method, status, config, missing, sealed,
  base_url, expires_ms, revision, created_ms, updated_ms)
values (?1, ?2, ?3, ?4, ?5, 'installed', ?6, ?7, ?8, ?9, ?10, 1, ?11, ?11)
on conflict (tenant_id, connector_id) do update set display_name = excluded.display_name,
  auth_method = excluded.auth_method, status = 'installed', config = excluded.config, missing = excluded.missing, sealed = excluded.sealed,
  base_url = excluded.base_url, expires_ms = excluded.expires_ms, revision = revision + 1, tested_ms = null,
  tested_ok = null, refresh_until_ms = null, updated_ms = excluded.updated_ms
returning *`,
          args: [
            ...[tenantId, connectorId, id, JSON.stringify(displayName), method, JSON.stringify(config)],
            ...[JSON.stringify(missing), sealed],
            ...[baseUrl === undefined ? null : JSON.stringify(baseUrl), expiresMs ?? null, updatedMs],
          ],
        },
        ...also,
      ])
      return toInstall(rowsOf<Stored>(made!)[0]!)!
    },

    async ofTenant(tenantId: string, connectorId: string): Promise<Install | undefined> {
      const sql = 'select * from connectors where tenant_id = ? and connector_id = ?'
      const rows = rowsOf<Stored>(await db.execute({ sql, args: [tenantId, connectorId] }))
      return rows[0] && toInstall(rows[0])
    },

    async byId(id: string): Promise<Install | undefined> {
      const found = await db.execute({ sql: 'select * from connectors where id = ?', args: [storableText(id)] })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toInstall(rows[0])
    },

    async list(tenantId: string, page: PageOf): Promise<Install[]> {
      const { where, order, args } = pageSql(page)
      // Those that this version knows, so that a page is full where others follow it.
      const sql = `select * from connectors where tenant_id = ?
and (connector_id in (select value from json_each(?)) or ${IS_CUSTOM}) ${where} ${order}`
      const rows = rowsOf<Stored>(await db.execute({ sql, args: [tenantId, JSON.stringify(connectorIds), ...args] }))
      return readPage(page, rows, toInstall).filter(row => row !== undefined)
    },

    /** What a custom connector keeps of its document, for the transaction of its install. */
    apiStatement: (tenantId: string, connectorId: CustomId, api: CompiledApi): InStatement => ({
      sql: `insert into connector_apis (tenant_id, connector_id, api) values (?, ?, ?)
on conflict (tenant_id, connector_id) do update set api = excluded.api`,
      args: [tenantId, connectorId, JSON.stringify(api)],
    }),

    async api(tenantId: string, connectorId: string): Promise<CompiledApi | undefined> {
      const sql = 'select api from connector_apis where tenant_id = ? and connector_id = ?'
      const found = await db.execute({ sql, args: [tenantId, connectorId] })
      const [row] = rowsOf<Pick<RowOf<typeof connectorApis>, 'api'>>(found)
      return row && (readJson(row.api) as CompiledApi)
    },

    /** Those of a tenant that are its own, by name. */
    async customs(tenantId: string): Promise<Install[]> {
      const sql = `select * from connectors where tenant_id = ? and ${IS_CUSTOM}
order by connector_id limit ${MOST_CUSTOM}`
      return rowsOf<Stored>(await db.execute({ sql, args: [tenantId] })).flatMap(row => toInstall(row) ?? [])
    },

    async ids(tenantId: string): Promise<Set<string>> {
      const sql = 'select connector_id from connectors where tenant_id = ?'
      const found = await db.execute({ sql, args: [tenantId] })
      return new Set(rowsOf<Pick<Stored, 'connector_id'>>(found).map(row => row.connector_id))
    },

    async remove({ id }: Install): Promise<boolean> {
      return (await db.execute({ sql: 'delete from connectors where id = ?', args: [id] })).rowsAffected === 1
    },

    /** For a transaction that only binds an idempotency key. */
    write: (statements: InStatement[]) => db.write(statements),
  }
}

/** The credentials of an install, each change only where no others are in their place. */
function installedCredentials(db: Db) {
  return {
    /** What the vendor said of these credentials; nothing once there are others. */
    async mark({ id, revision }: Install, status: Install['status'], nowMs: number): Promise<void> {
      await db.execute({
        sql: 'update connectors set status = ?, updated_ms = ? where id = ? and revision = ? and status <> ?',
        args: [status, nowMs, id, revision, status],
      })
    },

    /** Of all processes that want to refresh these credentials, one may until then. */
    async claimRefresh({ id, revision }: Install, nowMs: number, untilMs: number): Promise<boolean> {
      const { rowsAffected } = await db.execute({
        sql: `update connectors set refresh_until_ms = ?1
where id = ?2 and revision = ?3 and (refresh_until_ms is null or refresh_until_ms <= ?4)`,
        args: [untilMs, id, revision, nowMs],
      })
      return rowsAffected === 1
    },

    async releaseRefresh({ id, revision }: Install): Promise<void> {
      await db.execute({
        sql: 'update connectors set refresh_until_ms = null where id = ? and revision = ?',
        args: [id, revision],
      })
    },

    /** Puts refreshed tokens in the place of these; undefined once there are others. */
    async renew(
      { id, revision }: Install,
      { sealed, expiresMs, nowMs }: { sealed: string; expiresMs: number | undefined; nowMs: number },
    ): Promise<Install | undefined> {
      const found = await db.execute({
        sql: `update connectors set sealed = ?1, expires_ms = ?2, status = 'installed', revision = revision + 1,
  refresh_until_ms = null, updated_ms = ?3 where id = ?4 and revision = ?5 returning *`,
        args: [sealed, expiresMs ?? null, nowMs, id, revision],
      })
      const rows = rowsOf<Stored>(found)
      return rows[0] && toInstall(rows[0])
    },

    async tested({ id, revision }: Install, success: boolean, nowMs: number): Promise<void> {
      await db.execute({
        sql: 'update connectors set tested_ms = ?, tested_ok = ? where id = ? and revision = ?',
        args: [nowMs, success ? 1 : 0, id, revision],
      })
    },
  }
}
