import type { InStatement } from '@libsql/client/web'
import { type Db, listIn, type RowOf, readRow, rowsOf, textIn } from '../../../shared/sql/db.ts'
import { storableText } from '../../../shared/sql/sql-values.ts'
import type { ApiKey } from '../../../shared/wire/runtime/auth.ts'
import { type PageOf, pageSql, readPage } from '../../http/page.ts'
import type { apiKeys } from '../../schema/tables.ts'

export interface KeyRow {
  id: string
  tenantId: string
  name: string
  prefix: string
  scopes: string[]
  createdMs: number
  expiresMs: number | undefined
  revokedMs: number | undefined
  usedMs: number | undefined
}

export interface NewKey {
  id: string
  tenantId: string
  name: string
  hash: string
  prefix: string
  scopes: readonly string[]
  createdMs: number
  createdBy: string
  expiresMs: number | undefined
}

type Stored = RowOf<typeof apiKeys>

export type KeyStore = ReturnType<typeof keyStore>

export function keyStore(db: Db) {
  async function one(where: string, value: string): Promise<KeyRow | undefined> {
    const rows = rowsOf<Stored>(await db.execute({ sql: `select * from api_keys where ${where} = ?`, args: [value] }))
    return rows[0] && toKey(rows[0])
  }

  return {
    getByHash: (hash: string) => one('hash', hash),
    get: (id: string) => one('id', storableText(id)),

    /** With `ifAuthor`, only when its author is a person who stands in the store by then. */
    insert(key: NewKey, { ifAuthor = false } = {}): InStatement {
      return {
        sql: `insert into api_keys (id, tenant_id, name, hash, prefix, scopes, created_ms, created_by, expires_ms)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 where ${ifAuthor ? 'exists (select 1 from users where id = ?8)' : 'true'}`,
        args: [
          key.id,
          key.tenantId,
          JSON.stringify(key.name),
          key.hash,
          key.prefix,
          JSON.stringify(key.scopes),
          key.createdMs,
          key.createdBy,
          key.expiresMs ?? null,
        ],
      }
    },

    async list(tenantId: string, page: PageOf): Promise<KeyRow[]> {
      const { where, order, args } = pageSql(page)
      const found = await db.execute({
        sql: `select * from api_keys where tenant_id = ? ${where} ${order}`,
        args: [tenantId, ...args],
      })
      return readPage(page, rowsOf<Stored>(found), toKey)
    },

    /** A key stays revoked from the first time on. */
    async revoke(id: string, nowMs: number): Promise<void> {
      await db.execute({
        sql: 'update api_keys set revoked_ms = ? where id = ? and revoked_ms is null',
        args: [nowMs, id],
      })
    },

    /** When keys were last used, many in one statement; an older time never replaces a newer one. */
    async touch(used: ReadonlyMap<string, number>): Promise<void> {
      await db.execute({
        sql: `update api_keys set used_ms = used.value from json_each(?) as used
where api_keys.id = used.key and coalesce(api_keys.used_ms, 0) < used.value`,
        args: [JSON.stringify(Object.fromEntries(used))],
      })
    },
  }
}

function toKey(row: Stored): KeyRow {
  return readRow(`API key ${row.id}`, row, () => ({
    id: row.id,
    tenantId: row.tenant_id,
    name: textIn(row.name),
    prefix: row.prefix,
    scopes: listIn<string>(row.scopes),
    createdMs: row.created_ms,
    expiresMs: row.expires_ms ?? undefined,
    revokedMs: row.revoked_ms ?? undefined,
    usedMs: row.used_ms ?? undefined,
  }))
}

export function statusOfKey({ revokedMs, expiresMs }: KeyRow, nowMs: number): ApiKey['status'] {
  if (revokedMs !== undefined) return 'revoked'
  return expiresMs !== undefined && expiresMs <= nowMs ? 'expired' : 'active'
}

export function toApiKey(key: KeyRow, nowMs: number): ApiKey {
  const { id, name, prefix, scopes, createdMs, expiresMs, usedMs } = key
  return {
    id,
    name,
    prefix,
    scopes,
    status: statusOfKey(key, nowMs),
    createdAt: new Date(createdMs).toISOString(),
    ...(expiresMs !== undefined && { expiresAt: new Date(expiresMs).toISOString() }),
    ...(usedMs !== undefined && { lastUsedAt: new Date(usedMs).toISOString() }),
  }
}
