import type { InValue } from '@libsql/client/web'
import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { type DamagedRowError, readRows } from '../../shared/sql/db.ts'
import { type Position, readCursor, writeCursor } from './cursor.ts'

/** What a store needs to know of a page. It answers up to `limit + 1` rows, so that one more tells of a next page. */
export interface PageOf {
  limit: number
  after: Position | undefined
  /** Told of each row that the page leaves out, and where it stands. */
  damaged?: (error: DamagedRowError, place?: Position) => void
  /** Told that the page ends before its limit, since its rows are long. */
  endsEarly?: () => void
}

/** What `read` makes of the rows of a page: one that cannot be read does not take the others away. */
export function readPage<R extends object, T>(
  { damaged }: PageOf,
  rows: readonly R[],
  read: (row: R) => T,
  positionOf: (row: R) => Position | undefined = positionByCreation,
): T[] {
  return readRows(rows, read, (error, row) => {
    if (!damaged) throw error
    damaged(error, positionOf(row))
  })
}

/** For tables with `created_ms` and `id`. */
function positionByCreation(row: { created_ms?: unknown; id?: unknown }): Position | undefined {
  const { created_ms: at, id } = row
  return typeof at === 'number' && typeof id === 'string' ? { at, id } : undefined
}

export interface Page extends PageOf {
  /** The rows of this page; where more exist, the answer gets its `Link` header. */
  cut<T>(rows: readonly T[], position: (row: T) => Position): T[]
}

interface ListCall {
  endpoint: { id: string }
  principal: { tenantId: string }
  query: { limit: number; cursor?: string | undefined }
  context: Context
}

/** Counts the rows that the answer of a list leaves out, and has them logged. */
export function leftOut(context: Context) {
  const errors: DamagedRowError[] = []
  let last: Position | undefined
  return {
    damaged(error: DamagedRowError, place?: Position): void {
      errors.push(error)
      if (place !== undefined && Number.isSafeInteger(place.at) && place.at >= 0) last = place
      context.set('damaged', errors)
      context.header(DAMAGED_ROWS, String(errors.length))
    },
    get count() {
      return errors.length
    },
    /** Where the last of them stands. */
    get last() {
      return last
    },
  }
}

/** Of the answer of a list: how many rows it leaves out, since they are damaged. */
export const DAMAGED_ROWS = 'x-damaged-rows'

/** Reads the page that a list's query asks for. Every other member of the query is a filter, and must stay the same. */
export function pageOf({ endpoint, principal, query, context }: ListCall): Page {
  const { limit, cursor, ...filters } = query
  const list = JSON.stringify([endpoint.id, principal.tenantId, filters])
  const after = cursor === undefined ? undefined : readCursor(cursor, list)
  if (cursor !== undefined && after === undefined) {
    const message = 'expected the cursor of the Link header of this very list, with the same filters'
    throw new ApiError('validation_failed', `cursor: ${message}`, { details: [{ path: 'cursor', message }] })
  }
  const left = leftOut(context)
  let isLong = false
  return {
    limit,
    after,
    endsEarly: () => {
      isLong = true
    },
    damaged: left.damaged,
    cut(rows, position) {
      const page = rows.slice(0, limit)
      const last = page.at(-1)
      // Behind a page whose rows are all left out there may be others.
      const end = last === undefined ? left.last : position(last)
      if ((isLong || rows.length + left.count > limit) && end !== undefined) {
        context.header('link', nextLink(new URL(context.req.url), limit, writeCursor(end, list)))
      }
      return page
    },
  }
}

/** The same path and filters with the next cursor, as a relative reference: the host may not know its public name. */
export function nextLink({ pathname, searchParams }: URL, limit: number, cursor: string): string {
  const filters = [...searchParams].filter(([name]) => !['limit', 'cursor', 'pageSize', 'pageToken'].includes(name))
  const next = new URLSearchParams([['limit', String(limit)], ...filters, ['cursor', cursor]])
  return `<${pathname}?${next}>; rel="next"`
}

/** The end of a list's statement, for tables with `created_ms` and `id`: put `where` after a condition. */
export function pageSql({ limit, after }: PageOf): { where: string; order: string; args: InValue[] } {
  return {
    where: after ? 'and (created_ms, id) < (?, ?)' : '',
    order: 'order by created_ms desc, id desc limit ?',
    args: [...(after ? [after.at, after.id] : []), limit + 1],
  }
}
