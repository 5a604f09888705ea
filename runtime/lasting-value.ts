import { type Db, type RowOf, rowsOf } from '../shared/sql/db.ts'
import type { meta } from './schema/tables.ts'

/** What is made once for each store and stands in it ever after, such as the id of its own node. */
export function lastingValue(db: Db, key: string, make: () => string): () => Promise<string> {
  let known: string | undefined
  return async () => {
    if (known !== undefined) return known
    const [, found] = await db.write([
      { sql: 'insert into runtime_meta (key, value) values (?, ?) on conflict do nothing', args: [key, make()] },
      { sql: 'select value from runtime_meta where key = ?', args: [key] },
    ])
    known = rowsOf<Pick<RowOf<typeof meta>, 'value'>>(found!)[0]!.value
    return known
  }
}
