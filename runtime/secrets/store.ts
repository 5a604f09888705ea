import type { Db } from '../../shared/sql/db.ts'
import { storableText } from '../schema/storable-text.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { Place } from '../vault/vault.ts'
import { type Sealing, vaultToStore } from '../vault/vault-to-store.ts'

export interface SecretRow {
  name: string
  updatedMs: number
}

export interface SecretsDeps {
  db: Db
  sealing: Sealing
  now: () => Date
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
}

export type SecretStore = ReturnType<typeof secretStore>

/** What a tenant's agents may be given under a name. Values go in sealed; only a run that names one gets it out. */
export function secretStore({ db, sealing, now, redact }: SecretsDeps) {
  return {
    async list(tenantId: string): Promise<SecretRow[]> {
      const sql = 'select name, updated_ms from secrets where tenant_id = ? order by name'
      const { rows } = await db.execute({ sql, args: [tenantId] })
      return rows.map(row => ({ name: String(row.name), updatedMs: Number(row.updated_ms) }))
    },

    async put(tenantId: string, name: string, value: string): Promise<SecretRow> {
      redact(value)
      const vault = await vaultToStore(sealing, 'a secret')
      const updatedMs = now().getTime()
      await db.execute({
        sql: `insert into secrets (tenant_id, name, sealed, updated_ms) values (?1, ?2, ?3, ?4)
on conflict do update set sealed = ?3, updated_ms = ?4`,
        args: [tenantId, name, await vault.seal(value, placeOf(tenantId, name)), updatedMs],
      })
      return { name, updatedMs }
    },

    async remove(tenantId: string, name: string): Promise<boolean> {
      const sql = 'delete from secrets where tenant_id = ? and name = ?'
      return (await db.execute({ sql, args: [tenantId, storableText(name)] })).rowsAffected === 1
    },

    /** The value, for the run that needs it; undefined when there is none of this name. */
    async open(tenantId: string, name: string): Promise<string | undefined> {
      const sql = 'select sealed from secrets where tenant_id = ? and name = ?'
      const { rows } = await db.execute({ sql, args: [tenantId, storableText(name)] })
      const vault = rows[0] && (await sealing())
      if (!rows[0]) return undefined
      if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
      const value = await vault.open(String(rows[0].sealed), placeOf(tenantId, name))
      redact(value)
      return value
    },
  }
}

export const SECRET_SEALED: SealedColumn = {
  ...{ table: 'secrets', column: 'sealed', key: ['tenant_id', 'name'] },
  placeOf: ({ tenant_id, name }) => placeOf(String(tenant_id), String(name)),
}

function placeOf(tenantId: string, name: string): Place {
  return { tenantId, recordId: `secret/${name}`, field: 'value' }
}
