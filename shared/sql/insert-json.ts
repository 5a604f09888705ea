import type { InStatement, InValue } from '@libsql/client/web'

/**
 * - `text`: must hold no NUL (the local driver cuts text there when it reads); a lone surrogate is stored as U+FFFD, as UTF-8 has none;
 * - `document`: the same as text, for columns that hold most of a row's bytes. It travels beside the JSON as UTF-8, so it is neither escaped
 *   nor parsed (measured at 50 rows of 450 bytes: 30 % less time for the whole statement);
 * - `integer`: safe integers, bigints up to 64 bits, booleans as 0 and 1;
 * - `real`: finite; about 1 value in 4,000 comes back one unit in the last place off, because SQLite parses it from text. What is hashed or
 *   compared belongs in a text or integer column;
 * - `blob`: bytes, which travel as a document's do.
 */
export type JsonColumnType = 'text' | 'document' | 'integer' | 'real' | 'blob'
export type JsonColumns = Readonly<Record<string, JsonColumnType>>

interface ColumnValues {
  text: string
  document: string
  integer: number | bigint | boolean
  real: number
  blob: Uint8Array
}

export type JsonRow<C extends JsonColumns> = { [K in keyof C]: ColumnValues[C[K]] | null }

export interface InsertJsonOptions<G extends JsonColumns> {
  /** Columns of the row that `where` needs and the table does not have. */
  given?: G
  /** Condition on each row, which is called `new` here: a row that does not meet it is skipped. */
  where?: string
  /** Text after the select, such as `on conflict do nothing` or `returning seq`. */
  after?: string
}

/**
 * One statement that inserts any number of rows: `insert … select … from json_each(?)`. Its text does not grow with the rows, and
 * binding is one string, so any number of rows fits (multi-row values end at 32,766 parameters). Measured with `npm run bench -- insert-json`.
 */
export function insertJson<const C extends JsonColumns, const G extends JsonColumns = Record<never, never>>(
  table: string,
  columns: C,
  { given, where, after = '' }: InsertJsonOptions<G> = {},
): { sql: string; statement: (rows: readonly (JsonRow<C> & JsonRow<G>)[], args?: InValue[]) => InStatement } {
  const read = Object.entries<JsonColumnType>({ ...columns, ...given })
  const inserted = Object.keys(columns).map(name => identifier(name))
  // What is packed takes two cells, where its bytes start and how many they are, so what follows moves up by one.
  let cells = 0
  const selected = read.map(([name, type]) => {
    const from = cells
    cells += isPacked(type) ? 2 : 1
    return `${extract(type, from)} as ${identifier(name)}`
  })
  const packs = read.some(([, type]) => isPacked(type))
  // Materialised as JSONB: each row is parsed once instead of once per column (measured at 200 rows: 28 % less time than reading the text).
  // `where true` also keeps a following `on conflict` from being read as a join condition.
  // Small rows are read faster as they are (measured: 15 % less time than materialising them).
  const source = packs ? '(select value as cells from json_each(?1))' : 'rows'
  const sql = [
    ...(packs ? [] : ['with rows as materialized (select jsonb(value) as cells from json_each(?1))']),
    `insert into ${identifier(table)} (${inserted.join(', ')})`,
    `select ${inserted.map(name => `new.${name}`).join(', ')}`,
    `from (select ${selected.join(', ')} from ${source}) as new where ${where ?? 'true'} ${after}`.trim(),
  ].join(' ')
  return {
    sql,
    statement(rows, args = []) {
      const packed = packs ? packer(rows, read) : undefined
      const lines = rows.map(row => {
        const line: (string | number | null)[] = []
        for (const [name, type] of read) {
          const value = cell(table, name, type, row[name])
          if (packed !== undefined && isPacked(type)) packed.pack(value, line)
          else line.push(value as string | number | null)
        }
        return line
      })
      return { sql, args: [JSON.stringify(lines), ...(packed ? [packed.bytes()] : []), ...args] }
    },
  }
}

function isPacked(type: JsonColumnType): boolean {
  return type === 'document' || type === 'blob'
}

function extract(type: JsonColumnType, index: number): string {
  const value = `cells ->> ${index}`
  if (isPacked(type)) {
    const bytes = `substr(?2, ${value}, cells ->> ${index + 1})`
    return type === 'document' ? `cast(${bytes} as text)` : bytes
  }
  // Integers may come as text, because JSON.stringify refuses a bigint; a cast of null stays null.
  return type === 'text' ? value : `cast(${value} as ${type})`
}

function cell(table: string, name: string, type: JsonColumnType, value: unknown): string | number | Uint8Array | null {
  if (value === null || value === undefined) return null
  switch (type) {
    case 'text':
    case 'document':
      if (typeof value !== 'string') break
      if (value.includes('\0')) {
        throw new RangeError(
          `${table}.${name} holds a NUL character, which text columns cannot keep: store it as JSON or as a blob.`,
        )
      }
      // An unpaired surrogate would arrive as invalid UTF-8, and reading it back aborts the whole process (tried).
      return value.isWellFormed() ? value : value.toWellFormed()
    case 'integer':
      if (typeof value === 'boolean') return value ? 1 : 0
      if (typeof value === 'bigint') {
        if (BigInt.asIntN(64, value) !== value)
          throw new RangeError(`${table}.${name} expected a 64-bit integer, got ${value}.`)
        return value.toString()
      }
      if (typeof value === 'number' && Number.isSafeInteger(value)) return value
      break
    case 'real':
      if (typeof value === 'number' && Number.isFinite(value)) return value
      break
    case 'blob':
      if (value instanceof Uint8Array) return value
      break
  }
  throw new TypeError(`${table}.${name} expected ${type}, got ${typeof value === 'number' ? value : typeof value}.`)
}

const encoder = new TextEncoder()

/** Puts the bytes of a statement one after the other; `pack` adds the 1-based place and the length that SQL's substr takes. */
function packer(
  rows: readonly Readonly<Record<string, unknown>>[],
  read: readonly (readonly [string, JsonColumnType])[],
) {
  const names = read.filter(([, type]) => isPacked(type)).map(([name]) => name)
  let most = 0
  for (const row of rows) {
    for (const name of names) {
      const value = row[name]
      // A UTF-16 unit is at most three bytes of UTF-8.
      if (typeof value === 'string') most += value.length * 3
      else if (value instanceof Uint8Array) most += value.length
    }
  }
  // Never empty: the local driver binds no bytes at all as null.
  const buffer = new Uint8Array(most + 1)
  let end = 0
  return {
    pack(value: string | number | Uint8Array | null, line: (string | number | null)[]): void {
      if (value === null) {
        line.push(null, null)
        return
      }
      const start = end
      if (value instanceof Uint8Array) {
        buffer.set(value, end)
        end += value.length
      } else end += encoder.encodeInto(String(value), buffer.subarray(end)).written
      line.push(start + 1, end - start)
    },
    bytes: () => buffer.slice(0, end + 1),
  }
}

function identifier(name: string): string {
  if (!/^[a-z_][a-z0-9_]*$/i.test(name)) throw new TypeError(`"${name}" is not a plain SQL name.`)
  return `"${name}"`
}
