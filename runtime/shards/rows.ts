import type { InStatement, InValue } from '@libsql/client/web'

/** A row as the client answers it, by the names of its columns. */
export type Row = Readonly<Record<string, InValue>>

export interface Keyed {
  table: string
  /** The columns of its primary key. */
  key: readonly string[]
}

/** SQLite takes 32,766 values in a statement; a server reads a request of a few megabytes at once. */
const MOST_VALUES = 8000
const MOST_BYTES = 1024 * 1024

/** Writes rows as they are: those that are there already are written over, and nothing that refers to them is touched. */
export function insertRows({ table, key }: Keyed, rows: readonly Row[]): InStatement[] {
  const [first] = rows
  if (first === undefined) return []
  const columns = Object.keys(first).filter(name => Number.isNaN(Number(name)))
  const changed = columns.filter(name => !key.includes(name))
  const update =
    changed.length === 0
      ? 'do nothing'
      : `do update set ${changed.map(name => `${name} = excluded.${name}`).join(', ')}`
  const after = key.length === 0 ? '' : ` on conflict (${key.join(', ')}) ${update}`
  const places = `(${columns.map(() => '?').join(', ')})`
  return groups(rows, columns.length).map(group => ({
    sql: `insert into ${table} (${columns.join(', ')}) values ${group.map(() => places).join(', ')}${after}`,
    args: group.flatMap(row => columns.map(name => row[name] ?? null)),
  }))
}

function groups(rows: readonly Row[], columns: number): Row[][] {
  const all: Row[][] = []
  let [group, bytes]: [Row[], number] = [[], 0]
  for (const row of rows) {
    const size = sizeOf(row)
    if (group.length > 0 && (bytes + size > MOST_BYTES || (group.length + 1) * columns > MOST_VALUES)) {
      all.push(group)
      ;[group, bytes] = [[], 0]
    }
    group.push(row)
    bytes += size
  }
  if (group.length > 0) all.push(group)
  return all
}

export function sizeOf(row: Row): number {
  let size = 0
  for (const value of Object.values(row)) {
    if (typeof value === 'string') size += value.length
    else if (value instanceof ArrayBuffer) size += value.byteLength
    else size += 8
  }
  return size
}
