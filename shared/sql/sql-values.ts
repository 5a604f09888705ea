import type { InArgs, InStatement, InValue, ResultSet, Row, Value } from '@libsql/client/web'
import { MOST_NANO } from '../money/money.ts'

/** The SQL of a statement. */
export function textOf(statement: InStatement | [string, InArgs?]): string {
  if (typeof statement === 'string') return statement
  return Array.isArray(statement) ? statement[0] : statement.sql
}

/** An argument as the driver takes it. */
export function toSql(value: InValue): unknown {
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError('Only finite numbers can be passed as arguments')
      return value
    case 'bigint':
      if (BigInt.asIntN(64, value) !== value) throw new RangeError('A bigint argument needs more than 64 bits')
      return value
    case 'boolean':
      return value ? 1 : 0
    case 'undefined':
      throw new TypeError('undefined cannot be passed as argument to the database')
    default:
      if (value instanceof ArrayBuffer) return new Uint8Array(value)
      return value instanceof Date ? value.valueOf() : value
  }
}

/** Whether the driver takes it as it stands: nearly all arguments are such, and need no list of their own. */
export function isSql(value: InValue): boolean {
  return typeof value === 'string' || value === null || (typeof value === 'number' && Number.isFinite(value))
}

function fromSql(value: unknown): Value {
  if (typeof value === 'bigint') {
    const number = Number(value)
    // This service writes none beyond what a number holds exactly. One such value is no reason to refuse the rows beside it: who reads it fails.
    return Number.isSafeInteger(number) ? number : value
  }
  if (value instanceof Uint8Array) {
    const { buffer, byteOffset, byteLength } = value
    return (
      byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)
    ) as ArrayBuffer
  }
  return value as Value
}

export type ToRow = (values: readonly unknown[]) => Row

/**
 * Makes rows with a member per column, and the same values by place, which are not enumerable. To be kept with the statement: all of
 * its rows then have one shape, which the engine makes once and knows again wherever they are read (measured: 14 µs for a result of
 * four columns where each made its own shape, 0.2 now).
 */
export function rowMaker(columns: readonly string[]): ToRow {
  if (new Set(columns).size < columns.length || columns.some(name => name === 'length' || /^\d+$/.test(name))) {
    return values => ambiguousRow(columns, values)
  }
  const byAad: PropertyDescriptorMap = { length: { value: columns.length } }
  for (const [place, name] of columns.entries()) {
    byAad[place] = {
      get(this: Record<string, Value>) {
        return this[name]
      },
    }
  }
  // With a constructor of its own the engine learns how much room a row takes; twice as fast for 40 columns as Object.create.
  function PlainRow(this: Record<string, Value>) {}
  PlainRow.prototype = Object.create(Object.prototype, byAad)
  const Plain = PlainRow as unknown as new () => Record<string, Value>
  return values => {
    const row = new Plain()
    for (let place = 0; place < values.length; place++) row[columns[place] as string] = fromSql(values[place])
    return row as unknown as Row
  }
}

/** Two columns have one name, or a name is one of those that a row has by itself: by name the first one is read, by place all are. */
function ambiguousRow(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Record<string, Value> = {}
  Object.defineProperty(row, 'length', { value: values.length })
  for (let place = 0; place < values.length; place++) {
    const name = columns[place] as string
    const value = fromSql(values[place])
    Object.defineProperty(row, place, { value })
    if (!Object.hasOwn(row, name)) Object.defineProperty(row, name, { value, enumerable: true, writable: true })
  }
  return row as unknown as Row
}

export function toResult(
  columns: string[],
  columnTypes: string[],
  rows: Row[],
  rowsAffected: number,
  lastInsertRowid: bigint | undefined,
): ResultSet {
  return {
    columns,
    columnTypes,
    rows,
    rowsAffected,
    lastInsertRowid,
    toJSON: () => ({
      columns,
      columnTypes,
      rowsAffected,
      lastInsertRowid: lastInsertRowid?.toString() ?? null,
      rows: rows.map(row => columns.map((_, place) => row[place])),
    }),
  }
}

/**
 * A text from outside as one that a statement can carry. Half of a surrogate pair has no UTF-8 form and ends the process
 * in the local driver, and a text column ends at a NUL.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

/**
 * Rows for `json_each`. Half of a surrogate pair is an escape in JSON, of which SQL makes a text that is no UTF-8: it ends the process that reads it
 * in the local driver, and every other that reads the row afterwards.
 */
export function jsonRows(rows: readonly unknown[]): string {
  const text = JSON.stringify(rows)
  if (!text.includes('\\ud')) return text
  return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}

/**
 * The sum of nano-USD over rows, none of which there may be. Providers say what calls cost, and a tenant may own one: `sum` would go on to an integer
 * that no reader takes, and to an error behind it.
 */
export const nanoSum = (of: string): string => `min(total(${of}), ${MOST_NANO}.0)`

/** A column of nano-USD with so much added. */
export const nanoPlus = (column: string, more: string): string => `min(${column} + ${more}, ${MOST_NANO})`
