import type { ResultSet } from '@libsql/client/web'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

/** What a whole row of a table holds, by the names of its columns. */
export type RowOf<T extends SQLiteTable> = T['$inferSelect']

/**
 * The rows of an answer with the types of their columns. Every table is strict, so a value has the type that its column declares; `R` names
 * the columns that the statement selects.
 */
export function rowsOf<R extends object>({ rows }: Pick<ResultSet, 'rows'>): readonly R[] {
  return rows as readonly object[] as readonly R[]
}
