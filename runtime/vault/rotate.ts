import type { InStatement, Row } from '@libsql/client/web'
import type { Db } from '../../shared/sql/db.ts'
import { type Vault, type VaultAad, VaultError } from './vault.ts'

/** A column of texts that the vault sealed, and how to say where each belongs. */
export interface SealedColumn {
  table: string
  column: string
  /** The columns that tell its rows apart. */
  key: readonly string[]
  /** Where the table holds other things too. */
  where?: string
  aadOf: (row: Row) => VaultAad
}

const TRIES = 5

/**
 * Wraps every data key anew under the vault's current key, all of them in one transaction: a process that dies in the middle leaves the
 * store wholly under the old key. What is sealed stays as it is. Answers how many were wrapped; none is left under an older key.
 */
export async function rotateMasterKey(db: Db, vault: Vault, columns: readonly SealedColumn[]): Promise<number> {
  for (let tried = 0; tried < TRIES; tried++) {
    const statements: InStatement[] = []
    for (const one of columns) statements.push(...(await moved(db, vault, one)))
    if (statements.length === 0) return 0
    // A text that was saved meanwhile is not overwritten by what it was; then everything is looked at again.
    const results = await db.write(statements)
    if (results.every(({ rowsAffected }) => rowsAffected === 1)) return statements.length
  }
  throw new VaultError('other_key', 'secrets are being saved all the time: stop the services of this store first')
}

async function moved(
  db: Db,
  vault: Vault,
  { table, column, key, where = 'true', aadOf }: SealedColumn,
): Promise<InStatement[]> {
  const { rows } = await db.execute(`select ${key.join(', ')}, ${column} as sealed_text from ${table} where ${where}`)
  const same = key.map((name, at) => `${name} = ?${at + 3}`).join(' and ')
  const statements: InStatement[] = []
  for (const row of rows) {
    const sealed = row.sealed_text
    if (typeof sealed !== 'string' || vault.isCurrent(sealed)) continue
    statements.push({
      sql: `update ${table} set ${column} = ?1 where ${column} = ?2 and ${same}`,
      args: [await vault.rewrap(sealed, aadOf(row)), sealed, ...key.map(name => row[name] ?? null)],
    })
  }
  return statements
}
