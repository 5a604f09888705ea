import type { InArgs, InStatement, ResultSet, Value } from '@libsql/client/web'
import type { Db } from './db.ts'
import { markUnavailable, StoreLockedError } from './db-fault.ts'
import { reads } from './guarded-client.ts'
import { rowMaker, type ToRow, toResult } from './sql-values.ts'

/** What another thread does for a database. */
export interface Writer {
  /** `alone`: one statement, as it stands, which may be one that cannot stand in a transaction. */
  write: (statements: InStatement[], alone?: boolean) => Promise<ResultSet[]>
  writable?: Db['writable']
}

/**
 * A database whose writes are forwarded to another thread, which waits for the write lock and for the disk in the caller's place. Reads stay here: in
 * WAL mode they see every commit that was told of, and wait for none.
 */
export function forwardingDb(db: Db, { write, writable }: Writer): Db {
  return {
    ...db,
    write: async statements => (statements.length === 0 ? [] : write(statements)),
    async execute(statement) {
      if (reads(typeof statement === 'string' ? statement : statement.sql)) return db.execute(statement)
      const [result] = await write([statement], true)
      return result!
    },
    async writable() {
      const fault = db.fault()
      if (fault !== undefined) throw new Error(fault)
      await (writable ?? db.writable)()
    },
  }
}

/** A text that was sent before goes as its number: copying texts was most of what a transaction cost its sender. */
type Sent = [text: string | number, args: InArgs | undefined]

/** One transaction for another thread's connection, and what came of it. */
export interface WriteRequest {
  write: number
  /** `lock`: whether one could begin, and nothing more. */
  statements: Sent[] | 'lock'
  /** The one statement is made as it stands: some cannot stand in a transaction. */
  alone?: boolean
}
/** A number: the statement gives no rows, and changed so many. */
type Came = number | { columns: string[]; rows: Value[][]; rowsAffected: number }
export type WriteResult =
  | { written: number; results: Came[] }
  | { written: number; failed: { message: string; code: string | undefined; isLocked: boolean } }

/** The texts of a process are few; those beyond go as they stand. */
const MOST_TEXTS = 1000

/** A few hundred statements have rows to answer with; each names the same columns every time. */
const MOST_SHAPES = 1000

/** The near side: orders on their way. */
export function writeProxy(post: (order: WriteRequest) => void, waits: () => void) {
  const open = new Map<number, PromiseWithResolvers<ResultSet[]>>()
  const shapes = new Map<string, ToRow>()
  /** In the order in which they were sent, which is the order in which the far side numbers them. */
  const texts = new Map<string, number>()
  let count = 0

  function take(written: number): PromiseWithResolvers<ResultSet[]> | undefined {
    const one = open.get(written)
    open.delete(written)
    waits()
    return one
  }

  function order(statements: InStatement[] | 'lock', alone = false): Promise<ResultSet[]> {
    const one = Promise.withResolvers<ResultSet[]>()
    open.set(++count, one)
    waits()
    const known = texts.size
    try {
      post({ write: count, statements: statements === 'lock' ? 'lock' : statements.map(sent), alone })
    } catch (error) {
      // The far side has not heard of the new texts either.
      for (const [text, number] of texts) if (number >= known) texts.delete(text)
      take(count)?.reject(error)
    }
    return one.promise
  }

  function sent(statement: InStatement): Sent {
    const { sql, args } = typeof statement === 'string' ? { sql: statement } : statement
    const number = texts.get(sql)
    if (number === undefined && texts.size < MOST_TEXTS) texts.set(sql, texts.size)
    return [number ?? sql, args]
  }

  function shapeOf(columns: string[]): ToRow {
    const key = columns.join('\0')
    const known = shapes.get(key)
    if (known) return known
    if (shapes.size >= MOST_SHAPES) shapes.clear()
    const made = rowMaker(columns)
    shapes.set(key, made)
    return made
  }

  return {
    get size() {
      return open.size
    },
    write: (statements: InStatement[], alone?: boolean): Promise<ResultSet[]> => order(statements, alone),
    /** Fails, saying why, where a write would wait. */
    writable: async (): Promise<void> => void (await order('lock')),
    heard(result: WriteResult): void {
      const one = take(result.written)
      if ('failed' in result) one?.reject(failure(result.failed))
      else
        one?.resolve(
          result.results.map(came => {
            if (typeof came === 'number') return toResult([], [], [], came, undefined)
            const { columns, rows, rowsAffected } = came
            return toResult(columns, [], rows.length === 0 ? [] : rows.map(shapeOf(columns)), rowsAffected, undefined)
          }),
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

function failure({ message, code, isLocked }: Extract<WriteResult, { failed: unknown }>['failed']): Error {
  const error = isLocked ? new StoreLockedError() : Object.assign(new Error(message), { code })
  // Rejects, which is all that makes it known as a store that is away.
  if (isLocked) markUnavailable(() => Promise.reject(error)).catch(() => undefined)
  return error
}

/** The far side of one sender. Never rejects: a failure is news as well. */
export function writePerformer(): (db: Db, request: WriteRequest) => Promise<WriteResult> {
  const texts: string[] = []

  function received([text, args]: Sent): InStatement {
    const sql = typeof text === 'number' ? texts[text]! : text
    if (typeof text === 'string' && texts.length < MOST_TEXTS) texts.push(text)
    return args === undefined ? sql : { sql, args }
  }

  return async (db, { write, statements, alone }) => {
    try {
      if (statements === 'lock') {
        await db.writable()
        return { written: write, results: [] }
      }
      const all = statements.map(received)
      const results = alone ? [await db.execute(all[0]!)] : await db.write(all)
      return { written: write, results: results.map(came) }
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
      const message = error instanceof Error ? error.message : String(error)
      return { written: write, failed: { message, code, isLocked: error instanceof StoreLockedError } }
    }
  }
}

function came({ columns, rows, rowsAffected }: ResultSet): Came {
  if (columns.length === 0) return rowsAffected
  return { columns, rowsAffected, rows: rows.map(row => columns.map((_, place) => row[place] as Value)) }
}
