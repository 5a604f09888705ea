import type { BuildColumns, InferSelectModel } from 'drizzle-orm'
import {
  customType,
  type SQLiteColumnBuilderBase,
  type SQLiteTableWithColumns,
  sqliteTable,
} from 'drizzle-orm/sqlite-core'

type Columns = Record<string, SQLiteColumnBuilderBase>
type Row<C extends Columns> = InferSelectModel<
  SQLiteTableWithColumns<{
    name: string
    schema: undefined
    columns: BuildColumns<string, C, 'sqlite'>
    dialect: 'sqlite'
  }>
>

/** A table, of which the type shows its rows and nothing else: so the declarations of the package need no drizzle. */
export function table<C extends Columns>(
  name: string,
  columns: C,
): { readonly $inferSelect: { [K in keyof Row<C>]: Row<C>[K] } } {
  return sqliteTable(name, columns)
}

/** A blob, as the client reads it. */
export const bytes = customType<{ data: ArrayBuffer }>({ dataType: () => 'blob' })
