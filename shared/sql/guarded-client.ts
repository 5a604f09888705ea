import type { Client, InArgs, InStatement, TransactionMode } from '@libsql/client/web'
import type { LockWaits } from './group-commit.ts'
import { textOf } from './sql-values.ts'

/** A write was attempted through a database that was opened read-only. */
export class ReadOnlyDbError extends Error {
  override name = 'ReadOnlyDbError'
  readonly code = 'SQLITE_READONLY'
}

export interface ClientGuard {
  /** Statements that give a fresh connection its settings. Run again whenever the client may have replaced its connection. */
  settings: readonly string[]
  /** Refuse writes here, for clients whose engine does not: a server, or a replica that would pass the write on to its primary. */
  refuseWrites: boolean
  /** Where the engine does not wait for a lock by itself. */
  waits?: LockWaits | undefined
  /** Told of every statement that failed. */
  failed?: ((error: unknown) => void) | undefined
}

/**
 * The same client, with settings that survive the loss of a connection. The local driver drops a connection it cannot roll back and
 * opens another one with default settings without telling anyone; `reconnect()` does the same. So after a failure, and after
 * `reconnect()`, the settings are applied again before the next statement runs.
 */
export function guardedClient(inner: Client, { settings, refuseWrites, waits, failed }: ClientGuard): Client {
  let doubtful = false
  let restoring: Promise<void> | undefined

  async function restore() {
    try {
      for (const sql of settings) await inner.execute(sql)
      doubtful = false
    } finally {
      restoring = undefined
    }
  }

  const run = <T>(act: () => Promise<T>, onlyReads: () => boolean = () => false): Promise<T> =>
    waits ? waits.run(() => once(act), onlyReads) : once(act)

  async function once<T>(act: () => Promise<T>): Promise<T> {
    try {
      if (doubtful) {
        restoring ??= restore()
        await restoring
      }
      return await act()
    } catch (error) {
      doubtful = settings.length > 0
      failed?.(error)
      throw error
    }
  }

  function check(statements: readonly (InStatement | [string, InArgs?])[]) {
    if (!refuseWrites) return
    for (const statement of statements) {
      const sql = textOf(statement)
      if (!reads(sql)) throw new ReadOnlyDbError(`This database was opened read-only and cannot run: ${brief(sql)}`)
    }
  }

  return {
    async execute(statement: InStatement, args?: InArgs) {
      check([statement])
      return run(
        () => (typeof statement === 'string' ? inner.execute(statement, args) : inner.execute(statement)),
        () => reads(textOf(statement)),
      )
    },
    async batch(statements: (InStatement | [string, InArgs?])[], mode?: TransactionMode) {
      check(statements)
      return run(
        () => inner.batch(statements, mode),
        () => mode === 'read',
      )
    },
    async migrate(statements: InStatement[]) {
      check(statements)
      return run(() => inner.migrate(statements))
    },
    async transaction(mode: TransactionMode = 'write') {
      // A server accepts an insert inside BEGIN READONLY (tried), so a transaction handed out here could not be kept read-only.
      if (refuseWrites) {
        throw new ReadOnlyDbError(
          'A read-only server or replica takes no interactive transactions: use batch() instead.',
        )
      }
      return run(() => inner.transaction(mode))
    },
    async executeMultiple(sql: string) {
      if (refuseWrites) throw new ReadOnlyDbError('This database was opened read-only and runs no scripts.')
      return run(() => inner.executeMultiple(sql))
    },
    sync: () => inner.sync(),
    reconnect() {
      doubtful = settings.length > 0
      return inner.reconnect()
    },
    close: () => inner.close(),
    get closed() {
      return inner.closed
    },
    protocol: inner.protocol,
  }
}

function brief(sql: string): string {
  const line = sql.replace(/\s+/g, ' ').trim()
  return line.length > 80 ? `${line.slice(0, 80)}…` : line
}

// Comments and quoted text may hold any word; they are blanked before words are looked for.
const quietParts = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]/g

/** Whether a single SQL statement can only read. Errs towards no: what it does not recognise counts as a write. */
export function reads(sql: string): boolean {
  const words = sql.replace(quietParts, ' ').trim().replace(/;$/, '').toLowerCase()
  if (words.includes(';')) return false
  const verb = /^[a-z]+/.exec(words)?.[0]
  if (verb === 'select' || verb === 'values' || verb === 'explain') return true
  if (verb === 'with') return !/\b(insert|update|delete|replace\s+into)\b/.test(words)
  return verb === 'pragma' && !words.includes('=') && !words.includes('(')
}
