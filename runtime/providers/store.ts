import { type Db, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { providers, providerTries } from '../schema/tables.ts'

export interface ProviderRow {
  provider: ProviderId
  baseUrl: string | undefined
  keyHint: string | undefined
  sealedKey: string | undefined
  sealedHeaders: string | undefined
  createdMs: number
  updatedMs: number
}

export interface Try {
  atMs: number
  success: boolean
}

type Stored = RowOf<typeof providers>

export type ProviderStore = ReturnType<typeof providerStore>

export function providerStore(db: Db) {
  return {
    async get(tenantId: string, provider: string): Promise<ProviderRow | undefined> {
      const sql = 'select * from providers where tenant_id = ? and provider = ?'
      const rows = rowsOf<Stored>(await db.execute({ sql, args: [tenantId, storableText(provider)] }))
      return rows[0] && toRow(rows[0])
    },

    async list(tenantId: string): Promise<ProviderRow[]> {
      const sql = 'select * from providers where tenant_id = ? order by provider'
      const rows = rowsOf<Stored>(await db.execute({ sql, args: [tenantId] }))
      return rows.map(toRow)
    },

    /** The ids alone: what every run asks for when it looks for its model. */
    async ids(tenantId: string): Promise<ProviderId[]> {
      const found = await db.execute({ sql: 'select provider from providers where tenant_id = ?', args: [tenantId] })
      return rowsOf<Pick<Stored, 'provider'>>(found).map(row => row.provider)
    },

    /** Writes a provider over whatever was there; what an earlier key was told says nothing about this one. */
    async save(tenantId: string, row: Omit<ProviderRow, 'createdMs'>): Promise<void> {
      const { provider, baseUrl = null, keyHint = null, sealedKey = null, sealedHeaders = null, updatedMs } = row
      await db.write([
        {
          sql: `insert into providers
(tenant_id, provider, base_url, key_hint, sealed_key, sealed_headers, created_ms, updated_ms)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
on conflict do update set base_url = ?3, key_hint = ?4, sealed_key = ?5, sealed_headers = ?6, updated_ms = ?7`,
          args: [tenantId, provider, baseUrl, keyHint, sealedKey, sealedHeaders, updatedMs],
        },
        forget(tenantId, provider),
      ])
    },

    async remove(tenantId: string, provider: string): Promise<boolean> {
      const sql = 'delete from providers where tenant_id = ? and provider = ?'
      const args = [tenantId, storableText(provider)]
      const [removed] = await db.write([{ sql, args }, forget(tenantId, provider)])
      return removed?.rowsAffected === 1
    },

    async tries(tenantId: string): Promise<ReadonlyMap<string, Try>> {
      const found = await db.execute({ sql: 'select * from provider_tries where tenant_id = ?', args: [tenantId] })
      const rows = rowsOf<RowOf<typeof providerTries>>(found)
      return new Map(rows.map(row => [row.provider, { atMs: row.at_ms, success: row.success !== 0 }]))
    },

    async tried(tenantId: string, provider: ProviderId, { atMs, success }: Try): Promise<void> {
      await db.execute({
        sql: `insert into provider_tries (tenant_id, provider, at_ms, success) values (?1, ?2, ?3, ?4)
on conflict do update set at_ms = ?3, success = ?4`,
        args: [tenantId, provider, atMs, success ? 1 : 0],
      })
    },
  }
}

function forget(tenantId: string, provider: string) {
  const sql = 'delete from provider_tries where tenant_id = ? and provider = ?'
  return { sql, args: [tenantId, storableText(provider)] }
}

function toRow(row: Stored): ProviderRow {
  return readRow(`provider ${row.provider}`, row, () => ({
    provider: row.provider,
    baseUrl: row.base_url ?? undefined,
    keyHint: row.key_hint ?? undefined,
    sealedKey: row.sealed_key ?? undefined,
    sealedHeaders: row.sealed_headers ?? undefined,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  }))
}
