import { fromHex, toHex } from '../../shared/sign/bytes.ts'
import { type Db, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import type { meta } from '../schema/tables.ts'

/** The salt of prompt hashes that this store was created with; made at the first call. Of two processes that ask at once, both get the first. */
export async function promptSalt(db: Db): Promise<Uint8Array<ArrayBuffer>> {
  const fresh = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const results = await db.write([
    {
      sql: "insert into router_meta (key, value) values ('prompt_salt', ?) on conflict (key) do nothing",
      args: [fresh],
    },
    "select value from router_meta where key = 'prompt_salt'",
  ])
  const row = rowsOf<Pick<RowOf<typeof meta>, 'value'>>(results[1]!)[0]!
  return readRow('the salt of prompt hashes', row, ({ value }) => fromHex(value), 'restore a backup')
}
