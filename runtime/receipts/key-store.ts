import type { InStatement } from '@libsql/client/web'
import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import { type PublicKey, publicKey } from '../../shared/sign/ed25519.ts'
import type { ListedKey } from '../../shared/sign/keyring.ts'
import { type Db, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import type { receiptKeys } from '../schema/tables.ts'

export interface NewKey extends PublicKey {
  /** Absent where the seed comes from the environment at each start. */
  sealedSeed: string | undefined
}

export interface ActiveKey {
  keyId: string
  sealedSeed: string | undefined
  notBeforeMs: number
}

type KeyRow = RowOf<typeof receiptKeys>

export type KeyStore = ReturnType<typeof keyStore>

/** The keys that receipts are signed with. None is ever removed: a receipt must verify for as long as it is kept. */
export function keyStore(db: Db) {
  const insert = ({ keyId, publicKey: raw, sealedSeed }: NewKey, fromMs: number): InStatement => ({
    sql: `insert into receipt_keys (key_id, public_key, sealed_seed, status, not_before_ms)
      values (?, ?, ?, 'active', ?) on conflict do nothing`,
    args: [keyId, toBase64(raw), sealedSeed ?? null, fromMs],
  })

  return {
    async active(): Promise<ActiveKey | undefined> {
      const found = await db.execute(
        "select key_id, sealed_seed, not_before_ms from receipt_keys where status = 'active'",
      )
      const [row] = rowsOf<Pick<KeyRow, 'key_id' | 'sealed_seed' | 'not_before_ms'>>(found)
      return row && { keyId: row.key_id, notBeforeMs: row.not_before_ms, sealedSeed: row.sealed_seed ?? undefined }
    },

    /** The key is in use at a time before the one that it was listed from. */
    async validFrom(keyId: string, fromMs: number): Promise<void> {
      const sql = 'update receipt_keys set not_before_ms = min(not_before_ms, ?) where key_id = ?'
      await db.execute({ sql, args: [fromMs, keyId] })
    },

    async list(): Promise<ListedKey[]> {
      return rowsOf<KeyRow>(await db.execute('select * from receipt_keys order by not_before_ms, key_id')).map(toKey)
    },

    /** Of several processes that begin together one has its key kept, and the others use that one. */
    async begin(key: NewKey, fromMs: number): Promise<void> {
      await db.execute(insert(key, fromMs))
    },

    /**
     * The active key is valid until `untilMs`, and `next` from `fromMs` on. A key that is listed already is active again. Where the clock was
     * ahead when the newest receipts were signed, their key is valid until then.
     */
    async rotate(next: NewKey, fromMs: number, untilMs: number): Promise<void> {
      await db.write([
        {
          sql: `update receipt_keys set status = 'retired', not_after_ms = max(?, (select coalesce(max(issued_ms), 0) from
            (select issued_ms from receipts order by run_id desc limit 200))) where status = 'active' and key_id <> ?`,
          args: [untilMs, next.keyId],
        },
        insert(next, fromMs),
        {
          sql: "update receipt_keys set status = 'active', not_after_ms = null where key_id = ? and status = 'retired'",
          args: [next.keyId],
        },
      ])
    },

    /** Nothing that was signed with it counts any more, whenever it was signed. */
    async revoke(keyId: string): Promise<boolean> {
      const { rowsAffected } = await db.execute({
        sql: "update receipt_keys set status = 'revoked' where key_id = ? and status = 'retired'",
        args: [keyId],
      })
      return rowsAffected === 1
    },
  }
}

function toKey(row: KeyRow): ListedKey {
  return readRow(
    `the receipt key ${row.key_id}`,
    row,
    () => ({
      ...publicKey(fromBase64(row.public_key)),
      status: row.status,
      notBefore: new Date(row.not_before_ms),
      ...(row.not_after_ms !== null && { notAfter: new Date(row.not_after_ms) }),
    }),
    'restore a backup',
  )
}
