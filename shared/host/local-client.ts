import { statSync } from 'node:fs'
import { type Client, type InArgs, type InStatement, LibsqlBatchError, LibsqlError } from '@libsql/client/sqlite3'
import type { ResultSet, Transaction, TransactionMode, Value } from '@libsql/client/web'
import Database from 'libsql'
import { reads } from '../sql/guarded-client.ts'
import { isSql, rowMaker, type ToRow, toResult, toSql } from '../sql/sql-values.ts'
import { STORE_MOVED } from '../sql/store-faults.ts'
import { toLibsqlError } from './libsql-error.ts'

/** Statements kept ready; the texts of a process are few, so this bounds only what a program makes up as it goes. */
const MOST_PREPARED = 400

type Statement = ReturnType<Database.Database['prepare']>

interface Prepared {
  statement: Statement
  /** A setting of the connection is none of the file. */
  writesRows: boolean
  /** Undefined where the statement gives no rows. */
  columns: string[] | undefined
  types: string[]
  toRow: ToRow
}

/**
 * A client of one local database file, or of one in memory, that keeps its statements prepared. The package's own client
 * prepares every statement anew, asks for its columns twice and learns from an exception that it has none (measured: a
 * lookup of 61 µs takes 13 here). One connection; the driver is synchronous, so nothing is gained by a second.
 */
export function localClient(path: string, { timeout }: { timeout: number }): Client {
  let db = new Database(path, { timeout })
  let closed = false
  const place = /^(:memory:|file:)/.test(path) ? undefined : filesInPlace(path)
  /** Held by an interactive transaction. */
  let held: object | undefined
  let prepared = new Map<string, Prepared>()
  /** A statement met a lock: the driver leaves it half-way, where it keeps every later commit from happening until it is collected. */
  let stuck = false

  function prepare(sql: string): Prepared {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql)
    statement.safeIntegers(true)
    const writesRows = !reads(sql) && !/^\s*pragma\b/i.test(sql)
    const made: Prepared = { statement, writesRows, columns: undefined, types: [], toRow: rowMaker([]) }
    if (statement.reader) {
      statement.raw(true)
      readColumns(made)
    }
    if (prepared.size >= MOST_PREPARED) prepared.delete(prepared.keys().next().value as string)
    prepared.set(sql, made)
    return made
  }

  /** `alone`: a transaction of its own. */
  function run(stmt: InStatement | [string, InArgs?], alone = false): ResultSet {
    const { sql, args } = normal(stmt)
    try {
      const one = prepare(sql)
      if (alone && one.writesRows) place?.check()
      if (one.columns === undefined) {
        const { changes, lastInsertRowid } = one.statement.run(args)
        if (alone && one.writesRows) place?.remember()
        // What changes the schema may change the columns of what is prepared.
        if (/^\s*(create|alter|drop|attach|detach|vacuum|reindex)\b/i.test(sql)) prepared = new Map()
        return toResult([], [], [], changes, BigInt(lastInsertRowid))
      }
      const found = one.statement.all(args) as Value[][]
      if (alone && one.writesRows) place?.remember()
      // Another process may have added a column since.
      if (found[0] !== undefined && found[0].length !== one.columns.length) readColumns(one)
      return toResult(one.columns, one.types, found.map(one.toRow), 0, undefined)
    } catch (error) {
      // A statement that failed half-way must not be met again in that state.
      prepared.delete(sql)
      const known = toLibsqlError(error)
      stuck ||= known instanceof LibsqlError && known.code === 'SQLITE_BUSY'
      throw known
    }
  }

  function readColumns(one: Prepared): void {
    const columns = one.statement.columns()
    one.columns = columns.map(({ name }) => name)
    one.types = columns.map(({ type }) => type ?? '')
    one.toRow = rowMaker(one.columns)
  }

  function usable(by?: object): void {
    if (closed) throw new LibsqlError('The client is closed', 'CLIENT_CLOSED')
    if (held !== undefined && held !== by) {
      throw new LibsqlError('An open transaction holds the only connection: come back later', 'TRANSACTION_ACTIVE')
    }
    // It could not be opened when it was to be.
    if (!db.open) reopen()
  }

  /** Nothing stays open after a failure: the next caller must not find itself in another caller's transaction. */
  function rollBack(): void {
    try {
      if (db.inTransaction) db.exec('rollback')
    } catch {
      stuck = true
    }
    // The connection cannot be trusted any more; a new one has the defaults, which the guard around this client sets again.
    if (stuck) reopen()
  }

  function reopen(): void {
    prepared = new Map()
    stuck = false
    try {
      db.close()
    } catch {
      // It was closed by what broke it.
    }
    place?.checkClosed()
    db = new Database(path, { timeout })
  }

  function runAll(stmts: readonly (InStatement | [string, InArgs?])[], mode: TransactionMode): ResultSet[] {
    try {
      if (mode === 'write') place?.check()
      run(begin(mode))
      const results = stmts.map((stmt, index) => {
        try {
          return run(stmt)
        } catch (error) {
          throw error instanceof LibsqlError ? ofBatch(error, index) : error
        }
      })
      run('commit')
      if (mode === 'write') place?.remember()
      return results
    } catch (error) {
      rollBack()
      throw error
    }
  }

  function script(sql: string): void {
    try {
      db.exec(sql)
    } catch (error) {
      throw toLibsqlError(error)
    } finally {
      prepared = new Map()
    }
  }

  const client: Client = {
    async execute(stmt: InStatement, args?: InArgs) {
      usable()
      try {
        return run(typeof stmt === 'string' && args !== undefined ? [stmt, args] : stmt, true)
      } catch (error) {
        rollBack()
        throw error
      }
    },
    async batch(stmts, mode = 'deferred') {
      usable()
      return runAll(stmts, mode)
    },
    async migrate(stmts) {
      usable()
      run('pragma foreign_keys = off')
      try {
        return runAll(stmts, 'deferred')
      } finally {
        run('pragma foreign_keys = on')
      }
    },
    async executeMultiple(sql) {
      usable()
      try {
        script(sql)
      } finally {
        rollBack()
      }
    },
    async transaction(mode: TransactionMode = 'write') {
      usable()
      const self = {}
      try {
        run(begin(mode))
      } catch (error) {
        rollBack()
        throw error
      }
      held = self
      return transaction(self)
    },
    sync: () => Promise.reject(new LibsqlError('A local database has nothing to sync with', 'SYNC_NOT_SUPPORTED')),
    async reconnect() {
      held = undefined
      closed = false
      reopen()
    },
    close() {
      closed = true
      prepared = new Map()
      if (db.open) db.close()
    },
    get closed() {
      return closed
    },
    protocol: 'file',
  }

  function transaction(self: object): Transaction {
    function mine(): void {
      usable(self)
      if (held !== self || !db.inTransaction) {
        throw new LibsqlError('The transaction is closed', 'TRANSACTION_CLOSED')
      }
    }
    function end(sql: 'commit' | 'rollback'): void {
      mine()
      try {
        run(sql)
      } finally {
        rollBack()
        held = undefined
      }
    }
    return {
      async execute(stmt: InStatement) {
        mine()
        return run(stmt)
      },
      async batch(stmts) {
        mine()
        return stmts.map(stmt => run(stmt))
      },
      async executeMultiple(sql) {
        mine()
        script(sql)
      },
      commit: async () => end('commit'),
      rollback: async () => end('rollback'),
      close() {
        if (held === self) {
          rollBack()
          held = undefined
        }
      },
      get closed() {
        return held !== self
      },
    } as Transaction
  }

  // A path that is no database shows here and not at the first use.
  run('select 1')
  return client
}

function ofBatch({ message, code, extendedCode, rawCode, cause }: LibsqlError, index: number): LibsqlBatchError {
  return new LibsqlBatchError(message, index, code, extendedCode, rawCode, cause instanceof Error ? cause : undefined)
}

function begin(mode: TransactionMode): string {
  return mode === 'write' ? 'begin immediate' : 'begin deferred'
}

function normal(stmt: InStatement | [string, InArgs?]): { sql: string; args: unknown[] | Record<string, unknown> } {
  if (typeof stmt === 'string') return { sql: stmt, args: [] }
  const [sql, args = []] = Array.isArray(stmt) ? stmt : [stmt.sql, stmt.args]
  if (Array.isArray(args)) return { sql, args: args.every(isSql) ? args : args.map(toSql) }
  return {
    sql,
    args: Object.fromEntries(Object.entries(args).map(([name, value]) => [name.replace(/^[@$:]/, ''), toSql(value)])),
  }
}

/** Before each commit it would cost a client that is alone 7 % of its steps (measured); what was written just before is lost with the files as well. */
const LOOK_MS = 100

/**
 * Whether the files that a connection has open still have their paths: what is written to one that was moved or removed is lost to the next start.
 * It is made once the connection is open, which gives the file its number also on a file system of layers.
 */
function filesInPlace(path: string) {
  let file = identity('')
  let log: string | undefined
  let nextMs = Number.NEGATIVE_INFINITY

  /** Undefined: one of them is not there, or cannot be seen. */
  function identity(...ends: string[]): string | undefined {
    try {
      return ends
        .map(end => statSync(path + end, { bigint: true }))
        .map(({ dev, ino }) => `${dev} ${ino}`)
        .join()
    } catch {
      return undefined
    }
  }

  /** Fails where one is another one, or none, and looks again each time until they are back. */
  function look(): void {
    nextMs = Number.NEGATIVE_INFINITY
    if (file !== undefined && (identity('') !== file || (log !== undefined && identity('-wal', '-shm') !== log))) {
      throw new LibsqlError(`The file ${path} is not the one that was opened`, STORE_MOVED)
    }
    nextMs = performance.now() + LOOK_MS
  }

  return {
    /** Before what writes. */
    check(): void {
      if (performance.now() >= nextMs) look()
    },
    /** The connection is closed: the last one takes the log with it. */
    checkClosed(): void {
      log = undefined
      look()
    },
    /** Something was written to it, so that its log is there. */
    remember(): void {
      file ??= identity('')
      log ??= identity('-wal', '-shm')
    },
  }
}
