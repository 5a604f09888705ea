import type { InStatement, ResultSet, Value } from '@libsql/client/web'
import type { Db } from '../../../shared/sql/db.ts'
import { rowMaker, toResult } from '../../../shared/sql/sql-values.ts'

/** One transaction for another thread's connection, and what came of it. */
export interface WriteRequest {
  write: number
  statements: InStatement[]
}
export type WriteResult =
  | { written: number; results: { columns: string[]; rows: Value[][]; rowsAffected: number }[] }
  | { written: number; failed: { message: string; code: string | undefined } }

/** The near side: orders on their way. */
export function writeProxy(post: (order: WriteRequest) => void, waits: () => void) {
  const open = new Map<number, PromiseWithResolvers<ResultSet[]>>()
  let count = 0

  function take(written: number): PromiseWithResolvers<ResultSet[]> | undefined {
    const one = open.get(written)
    open.delete(written)
    waits()
    return one
  }

  return {
    get size() {
      return open.size
    },
    write(statements: InStatement[]): Promise<ResultSet[]> {
      const one = Promise.withResolvers<ResultSet[]>()
      open.set(++count, one)
      waits()
      try {
        post({ write: count, statements })
      } catch (error) {
        take(count)?.reject(error)
      }
      return one.promise
    },
    heard(result: WriteResult): void {
      const one = take(result.written)
      if ('failed' in result) one?.reject(Object.assign(new Error(result.failed.message), { code: result.failed.code }))
      else
        one?.resolve(
          result.results.map(({ columns, rows, rowsAffected }) =>
            toResult(columns, [], rows.length === 0 ? [] : rows.map(rowMaker(columns)), rowsAffected, undefined),
          ),
        )
    },
    /** What was on its way may have been written or not, like everything that a connection held when it broke. */
    lost(): void {
      const error = Object.assign(new Error('the thread that writes ended'), { code: 'CLIENT_CLOSED' })
      for (const one of open.values()) one.reject(error)
      open.clear()
    },
  }
}

/** The far side. Never rejects: a failure is news as well. */
export async function performWrite(db: Db, { write, statements }: WriteRequest): Promise<WriteResult> {
  try {
    const results = await db.write(statements)
    return {
      written: write,
      results: results.map(({ columns, rows, rowsAffected }) => ({
        columns,
        rowsAffected,
        rows: rows.map(row => columns.map((_, place) => row[place] as Value)),
      })),
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    return { written: write, failed: { message: error instanceof Error ? error.message : String(error), code } }
  }
}
