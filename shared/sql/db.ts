import type { Client, InStatement, ResultSet } from '@libsql/client/web'
import { readJson } from '../json/read-json.ts'
import { DbOpenError, markUnavailable, retryBusy, StoreLockedError } from './db-fault.ts'
import { lockWaits } from './group-commit.ts'
import { guardedClient, reads } from './guarded-client.ts'
import type { WriteHealth } from './hrana/write-watch.ts'
import { storeFault, storeFaults } from './store-faults.ts'
import { writeQueue } from './write-queue.ts'

/** `file` and `memory` are in this process, `remote` is a libSQL server, `replica` is a local copy that follows a server. */
export type DbKind = 'file' | 'memory' | 'remote' | 'replica'

/**
 * One database. Stores write through `execute` and `write`; neither holds a lock across an `await` of the caller's.
 * Interactive transactions (`client.transaction`) take the single local connection and make every other statement fail until they end.
 */
export interface Db {
  readonly kind: DbKind
  readonly readOnly: boolean
  readonly client: Client
  /** Of a server: whether it takes writes. */
  readonly writes: WriteHealth | undefined
  execute(statement: InStatement): Promise<ResultSet>
  /** All of the statements or none, in one transaction that takes the write lock at its start. */
  write(statements: InStatement[]): Promise<ResultSet[]>
  /** Several reads of one moment: no other writer's commit falls between them. */
  read(statements: InStatement[]): Promise<ResultSet[]>
  /** What was met of the disk, to an operator: it is full, or the file is damaged. */
  fault(): string | undefined
  /** Fails, saying why, where a write would wait: what a look at the store that only reads cannot tell. */
  writable(): Promise<void>
  /** Brings a replica up to its server; does nothing for the others. */
  sync(): Promise<void>
  /** What it gives is for a host whose connections end with what it awaits. */
  close(): void | Promise<void>
}

/** A commit of another process is over by then. */
export const COMMIT_MS = 20
/** How long a caller is kept waiting for the write lock. */
const ASKED_MS = 1000

/** To an operator. */
export const STORE_STUCK =
  'the database server answers reads and takes no writes (store_stuck): restart it, and let at most four processes write to it'

export interface PrepareOptions {
  kind: DbKind
  /** `full` waits for the disk at every commit; `normal` may lose the last commits at a power cut, never the file. */
  synchronous?: 'full' | 'normal'
  readOnly?: boolean
  /**
   * After how many pages of 8 KiB a commit brings the log of a file back into it, which takes two syncs more; 4,000 unless said otherwise.
   * A connection on which no caller may wait leaves it to another one, and its own number is for when that one is gone.
   */
  checkpointPages?: number | undefined
  /** For a client of a server that does not let its own writes wait for each other. */
  writeTurns?: boolean
  writes?: WriteHealth
  /** How the database is called in an error message: its path or address. */
  name?: string
}

/**
 * Every setting of a local connection, each with its reason. A server sets its own (it refuses these statements) and so does a replica.
 * The client must use one connection (`concurrency: 1`): settings belong to a connection, and with more than one the local driver opens
 * further ones, with defaults, whenever two statements overlap (tried: `synchronous` was back at FULL on four of five).
 */
function connectionSettings(options: PrepareOptions): string[] {
  const { kind, synchronous = 'full', readOnly = false, checkpointPages = 4000 } = options
  if (kind === 'remote' || kind === 'replica') return []
  return [
    // The engine waits inside the thread: as long as a commit takes, so that two processes rarely notice each other. What takes longer is
    // waited for outside of it (group-commit.ts). First, because the settings below may need the lock.
    `pragma busy_timeout = ${kind === 'file' ? COMMIT_MS : 5000}`,
    // The driver's build has it on; said here so that a change of driver does not silently turn off references.
    'pragma foreign_keys = on',
    // FULL: a commit in WAL mode is on the disk before the promise resolves, which "intent first" stands on. NORMAL syncs at checkpoints only.
    `pragma synchronous = ${synchronous}`,
    // Sorting and temporary tables in memory: no spill of run data into a temporary folder.
    'pragma temp_store = memory',
    // A schema cannot call functions with side effects through views or triggers that came with a foreign file.
    'pragma trusted_schema = off',
    ...(kind === 'file' && !readOnly
      ? // After a burst, cut the -wal file back to 64 MiB at the next checkpoint instead of keeping its largest size for ever.
        // What is deleted is overwritten, in pages that stay and in those that become free. Nothing else costs more for it (measured: making
        // runs nothing, deleting them two fifths more processor time).
        [
          'pragma journal_size_limit = 67108864',
          `pragma wal_autocheckpoint = ${checkpointPages}`,
          'pragma secure_delete = on',
        ]
      : []),
    // Last: enforced by the engine, also for statements that only look like reads.
    ...(readOnly ? ['pragma query_only = on'] : []),
  ]
}

/** Makes a client ready for use: settings, write guard, and one first statement so that a bad database fails here and not later. */
export async function prepareDb(client: Client, options: PrepareOptions): Promise<Db> {
  const { kind, readOnly = false } = options
  if (kind === 'replica' && !readOnly) {
    // Tried: a failing script sent through an embedded replica left half of itself committed on the server.
    throw new DbOpenError(
      'bad_url',
      'A replica is read-only: write through its server, or open the replica with readOnly.',
    )
  }
  const settings = connectionSettings(options)
  if (kind === 'file' && !readOnly) await useWal(client, options.name ?? 'the database')
  for (const sql of settings) await retryBusy(() => client.execute(sql))
  // Reading the schema touches the first page, which is where a file that is no database shows.
  await retryBusy(() => client.execute('select count(*) from sqlite_master'))

  const refuseWrites = readOnly && (kind === 'remote' || kind === 'replica')
  const faults = storeFaults()
  const waits = kind === 'file' ? lockWaits() : undefined
  const guarded =
    settings.length > 0 || refuseWrites
      ? guardedClient(client, { settings, refuseWrites, waits, failed: faults.note })
      : client
  const reached = kind === 'remote' ? markUnavailable : <T>(act: () => Promise<T>) => act()
  const turns = options.writeTurns ? writeQueue() : undefined
  const written = <T>(act: () => Promise<T>) => reached(() => (turns ? turns(act) : act()))
  let taken: Promise<unknown> | undefined
  return {
    kind,
    readOnly,
    client: guarded,
    writes: options.writes,
    execute(statement) {
      const sql = typeof statement === 'string' ? statement : statement.sql
      return (turns && !reads(sql) ? written : reached)(() => guarded.execute(statement))
    },
    write: async statements => (statements.length === 0 ? [] : written(() => guarded.batch(statements, 'write'))),
    read: async statements => (statements.length === 0 ? [] : reached(() => guarded.batch(statements, 'read'))),
    fault: () => faults.current,
    async writable() {
      if (faults.current !== undefined) throw new Error(faults.current)
      if (options.writes?.stuck) throw new Error(STORE_STUCK)
      if (!waits || readOnly) return
      // The lock and nothing more; callers that ask meanwhile get the result of the same try.
      taken ??= guarded.batch([], 'write').finally(() => {
        taken = undefined
      })
      let late: ReturnType<typeof setTimeout> | undefined
      const tooLong = new Promise<never>((_, reject) => {
        late = setTimeout(() => reject(new StoreLockedError()), ASKED_MS)
      })
      try {
        await Promise.race([taken, tooLong])
      } catch (error) {
        const sentence = storeFault(error)
        throw sentence === undefined ? error : new Error(sentence, { cause: error })
      } finally {
        clearTimeout(late)
      }
    },
    async sync() {
      if (kind === 'replica') await guarded.sync()
    },
    close: () => guarded.close(),
  }
}

/** WAL: readers and the writer do not wait for each other, and one commit costs one sync. Kept in the file, so once per file is enough. */
async function useWal(client: Client, name: string) {
  await client.execute('pragma busy_timeout = 5000')
  // Only a new file takes it. A commit of many small rows dirties fewer pages of 8 KiB than of 4 (measured: a quarter less time).
  await client.execute('pragma page_size = 8192')
  // Nor this: free pages can be given back a few at a time, where a whole vacuum would hold the lock from its start to its end. A commit writes
  // 1 % more bytes for it (measured).
  const vacuum = rowsOf<{ auto_vacuum: number }>(await client.execute('pragma auto_vacuum'))
  // Where it is set, setting it again would be a commit: a store on a full disk could not be opened, not even to be copied elsewhere.
  if (vacuum[0]?.auto_vacuum !== 2) await client.execute('pragma auto_vacuum = incremental')
  // Two processes that switch a new file at the same moment: one may be told busy without the timeout being honoured.
  const result = await retryBusy(() => client.execute('pragma journal_mode = wal'))
  const mode = rowsOf<{ journal_mode: string }>(result)[0]?.journal_mode
  if (mode !== 'wal') {
    throw new DbOpenError(
      'not_a_file',
      `${name} cannot use write-ahead logging (it stays in "${mode}" mode): put it on a local disk, not on a network share.`,
    )
  }
}

/** What a whole row of a table holds, by the names of its columns. */
export type RowOf<T extends { $inferSelect: unknown }> = T['$inferSelect']

/**
 * The rows of an answer with the types of their columns. Every table is strict, so a value has the type that its column declares; `R` names
 * the columns that the statement selects.
 */
export function rowsOf<R extends object>({ rows }: Pick<ResultSet, 'rows'>): readonly R[] {
  return rows as readonly object[] as readonly R[]
}

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
    if (isSealedElsewhere(cause)) throw cause
    throw new DamagedRowError(name, { cause }, advice)
  }
}

/** Under a key that this process was not given: the row is as it was written, and nothing may be decided about it. */
const isSealedElsewhere = (cause: unknown): boolean =>
  cause instanceof Error && 'problem' in cause && cause.problem === 'other_key'

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
