import type { InValue, Row } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { type DamagedRowError, type Db, type RowOf, readRow, readRows, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { type SecretBinding, type SecretPut, secretBinding } from '../../shared/wire/runtime/provider.ts'
import { RunFailure } from '../execution/failure.ts'
import type { secrets } from '../schema/tables.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import { type Sealing, type VaultAad, vaultToStore } from '../vault/vault.ts'
import { refusalOf, type SecretUse } from './binding.ts'

export interface SecretRow {
  name: string
  binding: SecretBinding
  updatedMs: number
}

export interface SecretsDeps {
  db: Db
  sealing: Sealing
  now: () => Date
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
}

type Stored = Pick<RowOf<typeof secrets>, 'name' | 'updated_ms' | 'binding'>

export type SecretStore = ReturnType<typeof secretStore>

/** What a tenant's agents may be given under a name. Values go in sealed; only a run that names one, for a use that its binding allows, gets it out. */
export function secretStore({ db, sealing, now, redact }: SecretsDeps) {
  async function stored(sql: string, args: InValue[]): Promise<SecretRow | undefined> {
    const rows = rowsOf<Stored>(await db.execute({ sql: `${sql} returning name, updated_ms, binding`, args }))
    return rows[0] && toSecret(rows[0])
  }

  return {
    /** Those that can be read; `damaged` gets the error of each other one. */
    async list(tenantId: string, damaged: (error: DamagedRowError) => void): Promise<SecretRow[]> {
      const sql = 'select name, updated_ms, binding from secrets where tenant_id = ? order by name'
      const rows = rowsOf<Stored>(await db.execute({ sql, args: [tenantId] }))
      return readRows(rows, toSecret, damaged)
    },

    /** Undefined where there is no such secret and no value was given. */
    async put(tenantId: string, name: string, { value, ...change }: SecretPut): Promise<SecretRow | undefined> {
      // RFC 7396, as `json_patch` does it: a list takes the place of a list, and null takes one away.
      const patch = JSON.stringify(change)
      const updatedMs = now().getTime()
      if (value === undefined) {
        return stored(
          `update secrets set binding = json_patch(binding, ?3), updated_ms = ?4 where tenant_id = ?1 and name = ?2`,
          [tenantId, storableText(name), patch, updatedMs],
        )
      }
      redact(value)
      const vault = await vaultToStore(sealing, 'a secret')
      return stored(
        `insert into secrets (tenant_id, name, sealed, updated_ms, binding) values (?1, ?2, ?5, ?4, json_patch('{}', ?3))
on conflict do update set sealed = ?5, updated_ms = ?4, binding = json_patch(binding, ?3)`,
        [tenantId, name, patch, updatedMs, await vault.seal(value, aadOf(tenantId, name))],
      )
    },

    async remove(tenantId: string, name: string): Promise<boolean> {
      const sql = 'delete from secrets where tenant_id = ? and name = ?'
      return (await db.execute({ sql, args: [tenantId, storableText(name)] })).rowsAffected === 1
    },

    /** The bindings of these secrets, as far as they are stored. */
    async bindings(tenantId: string, names: readonly string[]): Promise<Map<string, SecretBinding>> {
      const found = await db.execute({
        sql: 'select name, binding from secrets where tenant_id = ? and name in (select value from json_each(?))',
        args: [tenantId, JSON.stringify(names)],
      })
      const rows = rowsOf<Pick<Stored, 'name' | 'binding'>>(found)
      return new Map(rows.map(row => [row.name, bindingIn(row)]))
    },

    /** The value, for the run that needs it; undefined when there is none of this name. Refused where its binding does not name the use. */
    async open(tenantId: string, name: string, use: SecretUse): Promise<string | undefined> {
      const sql = 'select sealed, binding from secrets where tenant_id = ? and name = ?'
      const found = await db.execute({ sql, args: [tenantId, storableText(name)] })
      const rows = rowsOf<Pick<RowOf<typeof secrets>, 'sealed' | 'binding'>>(found)
      if (!rows[0]) return undefined
      const refusal = refusalOf(name, bindingIn(rows[0]), use)
      if (refusal !== undefined) throw new RunFailure('secret_refused', refusal)
      const vault = await sealing()
      if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
      const value = await vault.open(rows[0].sealed, aadOf(tenantId, name))
      redact(value)
      return value
    },
  }
}

/** A member under another name would be none, and the secret open to every host and use. */
const strictBinding = secretBinding.strict()

/** What stands in a row is read strictly: a binding that cannot be read opens nothing. */
export const bindingIn = ({ binding }: Row | Pick<Stored, 'binding'>): SecretBinding =>
  readRow('the binding of a secret', { binding }, () => strictBinding.parse(readJson(String(binding))))

const toSecret = (row: Stored): SecretRow =>
  readRow(`secret ${row.name}`, row, () => ({ name: row.name, updatedMs: row.updated_ms, binding: bindingIn(row) }))

export const SECRET_SEALED: SealedColumn = {
  table: 'secrets',
  column: 'sealed',
  key: ['tenant_id', 'name'],
  aadOf: ({ tenant_id, name }) => aadOf(String(tenant_id), String(name)),
}

function aadOf(tenantId: string, name: string): VaultAad {
  return { tenantId, recordId: `secret/${name}`, field: 'value' }
}
