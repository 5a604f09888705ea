import { readJson } from '../json/read-json.ts'

/** A row holds what this service never writes: the store was edited, or its disk changed it. Nothing is done by such a row. */
export class DamagedRowError extends Error {
  override name = 'DamagedRowError'

  constructor(row: string, options: { cause: unknown }, advice = 'restore a backup, or delete it and make it again') {
    super(`${row} is damaged in the store: ${advice}`, options)
  }
}

/** As far as a Date reaches. */
const LAST_MS = 8.64e15

/** What `read` makes of a row; an error names the row. No number of it is beyond 2^53, and no time beyond what a Date holds. */
export function readRow<R extends object, T>(name: string, row: R, read: (row: R) => T, advice?: string): T {
  try {
    for (const column in row) {
      const value: unknown = row[column]
      const isNoTime = typeof value === 'number' && Math.abs(value) > LAST_MS && column.endsWith('_ms')
      if (typeof value === 'bigint' || isNoTime) throw new RangeError(`${column} is ${value}`)
    }
    return read(row)
  } catch (cause) {
    throw new DamagedRowError(name, { cause }, advice)
  }
}

/** What `read` makes of the rows that can be read; `damaged` gets the error of each other one, which takes nothing from the rest. */
export function readRows<R, T>(
  rows: readonly R[],
  read: (row: R) => T,
  damaged: (error: DamagedRowError, row: R) => void,
): T[] {
  return rows.flatMap(row => {
    try {
      return [read(row)]
    } catch (error) {
      if (!(error instanceof DamagedRowError)) throw error
      damaged(error, row)
      return []
    }
  })
}

/** A text that is stored as JSON. */
export function textIn(json: string): string {
  const value = readJson(json)
  if (typeof value !== 'string') throw new TypeError('it is no text')
  return value
}

/** A list that is stored as JSON; of its items nothing is known. */
export function listIn<T>(json: string): T[] {
  const value = readJson(json)
  if (!Array.isArray(value)) throw new TypeError('it is no list')
  return value as T[]
}

/** An object that is stored as JSON; of its members nothing is known. */
export function objectIn<T extends object>(json: string): T {
  const value = readJson(json)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('it is no object')
  return value as T
}
