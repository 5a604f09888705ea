import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { openDb } from '../../host/open-libsql.ts'
import type { Migration } from '../migrate.ts'

/** `table.column` with its type, and whether it may be null. */
type Columns = Record<string, string>

const described = (type: string, isNullable: boolean) => type + (isNullable ? ', or null' : '')

/** What a module of tables declares. */
export function declaredColumns(module: object): Columns {
  const tables = Object.values(module).filter(value => is(value, SQLiteTable))
  return Object.fromEntries(
    tables.flatMap(table =>
      Object.values(getTableColumns(table)).map(column => [
        `${getTableName(table)}.${column.name}`,
        described(column.getSQLType(), !column.notNull),
      ]),
    ),
  )
}

/** What the store has, once it is made. */
export async function columnsIn(migrations: readonly Migration[]): Promise<Columns> {
  const db = await openDb(':memory:')
  for (const { sql } of migrations) await db.client.executeMultiple(sql)
  const { rows } =
    await db.execute(`select t.name || '.' || c.name place, lower(c.type) type, c."notnull" or c.pk > 0 present
    from pragma_table_list t, pragma_table_info(t.name) c where t.type = 'table' and t.name not like 'sqlite_%'`)
  await db.close()
  return Object.fromEntries(rows.map(row => [row.place, described(row.type as string, row.present === 0)]))
}
