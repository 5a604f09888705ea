import type { InArgs, InStatement, InValue, ResultSet } from '@libsql/client/web'
import { fromBase64, toBase64 } from '../../sign/bytes.ts'
import { rowMaker, type ToRow, textOf, toResult, toSql } from '../sql-values.ts'

/** Hrana 3 as JSON (libsql, docs/HRANA_3_SPEC.md): what a client sends on a stream, and what a server answers. */
export type WireValue =
  | { type: 'null' }
  | { type: 'integer'; value: string }
  | { type: 'float'; value: number }
  | { type: 'text'; value: string }
  | { type: 'blob'; base64: string }

export interface WireStatement {
  sql: string
  args?: WireValue[]
  named_args?: { name: string; value: WireValue }[]
  want_rows: boolean
}

export type Condition =
  | { type: 'ok'; step: number }
  | { type: 'not'; cond: Condition }
  | { type: 'and' | 'or'; conds: Condition[] }
  | { type: 'is_autocommit' }

export interface Step {
  stmt: WireStatement
  condition?: Condition
}

export type StreamRequest =
  | { type: 'execute'; stmt: WireStatement }
  | { type: 'batch'; batch: { steps: Step[] } }
  | { type: 'sequence'; sql: string }
  | { type: 'close' }

export interface WireError {
  message: string
  code?: string | null
}

export interface WireRows {
  cols: { name: string | null; decltype?: string | null }[]
  rows: WireValue[][]
  affected_row_count: number
  last_insert_rowid: string | null
}

export interface WireBatch {
  step_results: (WireRows | null)[]
  step_errors: (WireError | null)[]
}

export type StreamResult = { type: 'ok'; response: { result?: unknown } } | { type: 'error'; error: WireError }

export type Statement = InStatement | [string, InArgs?]

export const bare = (sql: string): WireStatement => ({ sql, want_rows: false })

/**
 * Lets a kept connection notice that another process changed the schema. A server reads the columns of a statement before it executes it:
 * without this the first `select *` after such a change gives values under the names of other columns (seen).
 */
export const FRESH_SCHEMA = bare('select 1 from sqlite_schema limit 0')

export function toWire(statement: Statement): WireStatement {
  const sql = textOf(statement)
  const args = typeof statement === 'string' ? undefined : Array.isArray(statement) ? statement[1] : statement.args
  if (args === undefined) return { sql, want_rows: true }
  if (Array.isArray(args)) return { sql, args: args.map(toWireValue), want_rows: true }
  const named_args = Object.entries(args).map(([name, value]) => ({ name, value: toWireValue(value) }))
  return { sql, named_args, want_rows: true }
}

/** A number is sent as one with a fraction, as the driver of a file binds it: an expression has the same type on both. */
function toWireValue(input: InValue): WireValue {
  const value = toSql(input)
  switch (typeof value) {
    case 'string':
      return { type: 'text', value }
    case 'number':
      return { type: 'float', value }
    case 'bigint':
      return { type: 'integer', value: String(value) }
    default:
      return value === null ? { type: 'null' } : { type: 'blob', base64: toBase64(value as Uint8Array) }
  }
}

function fromWireValue(value: WireValue): unknown {
  switch (value.type) {
    case 'null':
      return null
    case 'integer':
      return toNumber(value.value)
    case 'blob':
      return fromBase64(value.base64)
    default:
      return value.value
  }
}

function toNumber(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

/** Shapes of rows by their columns; the statements of a process are few. */
const makers = new Map<string, ToRow>()
const MOST_MAKERS = 400

function makerOf(columns: readonly string[]): ToRow {
  const key = columns.join('\u0000')
  const known = makers.get(key)
  if (known !== undefined) return known
  const made = rowMaker(columns)
  if (makers.size >= MOST_MAKERS) makers.delete(makers.keys().next().value as string)
  makers.set(key, made)
  return made
}

export function fromWire({ cols, rows, affected_row_count, last_insert_rowid }: WireRows): ResultSet {
  const columns = cols.map(({ name }) => name ?? '')
  const toRow = makerOf(columns)
  const types = cols.map(({ decltype }) => decltype ?? '')
  const rowid = last_insert_rowid === null ? undefined : BigInt(last_insert_rowid)
  return toResult(
    columns,
    types,
    rows.map(row => toRow(row.map(fromWireValue))),
    affected_row_count,
    rowid,
  )
}
