import { nextTurn } from '../time/sleep.ts'
import { type DbFault, dbFault, markUnavailable, pause, retryBusy, StoreLockedError } from './db-fault.ts'
import { writeQueue } from './write-queue.ts'

/** The queue is full: the database is slower than its callers. Shed load or try again later; the row was not written. */
export class QueueFullError extends Error {
  override name = 'QueueFullError'
}

/** The writer was closed before this row came; the row was not written. */
export class QueueClosedError extends Error {
  override name = 'QueueClosedError'
}

export interface GroupCommitOptions<Row, Result> {
  /**
   * Commits all rows or none and resolves with one result per row, in order. The writer calls it again with fewer rows after a
   * failure that `fault` calls `statement`, so a write that failed must have left nothing.
   */
  write: (rows: Row[]) => Promise<Result[]>
  /** Most rows in one commit. */
  maxRows?: number
  /** Most rows waiting or in flight; beyond that `append` rejects. */
  maxPending?: number
  /** Size of a row, for instance its bytes; a commit stops before `maxWeight` unless a single row is larger. */
  weigh?: (row: Row) => number
  maxWeight?: number
  /** How to read an error of `write`; see `dbFault`. */
  fault?: (error: unknown) => DbFault
  /** How often a busy database is asked again before the rows are given up. */
  busyRetries?: number
  /** Test seam for the pause before a busy database is asked again. */
  wait?: (ms: number) => Promise<void>
}

export interface GroupCommit<Row, Result> {
  /** Resolves with the row's own result once it is committed. Rows are committed in the order of these calls. */
  append(row: Row): Promise<Result>
  /** Resolves when every row appended before this call is settled, whether it was written or refused. */
  flush(): Promise<void>
  /** Takes no more rows and resolves when those already taken are settled. */
  close(): Promise<void>
  /** Rows waiting or in flight. */
  readonly pending: number
}

interface Waiting<Row, Result> {
  row: Row
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** Longest stretch of commits without giving the host a turn; the local driver never yields by itself. */
const turnMs = 10

/**
 * One writer that commits what has gathered. A commit costs one disk sync whether it holds one row or two hundred, so every append that
 * arrives while a commit is in flight shares the next one.
 */
export function groupCommit<Row, Result>(options: GroupCommitOptions<Row, Result>): GroupCommit<Row, Result> {
  const { write, maxRows = 256, maxPending = 10_000, weigh = () => 0, maxWeight = 4 * 1024 * 1024 } = options
  const { fault = dbFault, busyRetries = 6, wait = pause } = options
  const queue: Waiting<Row, Result>[] = []
  const flushes: { upTo: number; resolve: () => void }[] = []
  let appended = 0
  let settled = 0
  let running = false
  let closed = false
  let turnStart: number | undefined

  function settle() {
    settled++
    while (flushes[0] !== undefined && flushes[0].upTo <= settled) flushes.shift()?.resolve()
  }

  function refuse(group: readonly Waiting<Row, Result>[], error: unknown) {
    for (const waiting of group) {
      waiting.reject(error)
      settle()
    }
  }

  /** Commits these rows; a refused group is halved until the row at fault stands alone. Left half first: order is kept. */
  async function commit(group: Waiting<Row, Result>[]): Promise<void> {
    const rows = group.map(waiting => waiting.row)
    let results: Result[]
    try {
      results = await retryBusy(() => write(rows), { retries: busyRetries, wait })
    } catch (error) {
      if (group.length === 1 || fault(error) !== 'statement') return refuse(group, error)
      const middle = group.length >> 1
      await commit(group.slice(0, middle))
      return commit(group.slice(middle))
    }
    if (results.length !== group.length) {
      // The rows are committed, so writing them again would be wrong; a result cannot be matched to its row either.
      const said = `The write of ${group.length} rows gave ${results.length} results, expected one for each row.`
      return refuse(group, new Error(said))
    }
    for (let index = 0; index < group.length; index++) {
      group[index]!.resolve(results[index] as Result)
      settle()
    }
  }

  function take(): Waiting<Row, Result>[] {
    let weight = 0
    let count = 0
    for (const { row } of queue) {
      weight += weigh(row)
      if (count >= maxRows || (count > 0 && weight > maxWeight)) break
      count++
    }
    return queue.splice(0, count)
  }

  /**
   * Lets callers whose row was just committed come back with their next one: they sit a few promise hops away, and without this the
   * first of them would get a commit of its own. Ends after four hops without a newcomer.
   */
  async function gather() {
    for (let quiet = 0; quiet < 4 && queue.length < maxRows; ) {
      const before = queue.length
      await null
      quiet = queue.length === before ? quiet + 1 : 0
    }
  }

  /** With the synchronous local driver, commits and appends can follow each other in promise hops alone and starve timers and sockets. */
  async function giveTurn() {
    if (turnStart === undefined) {
      turnStart = performance.now()
      nextTurn(() => {
        turnStart = undefined
      })
    } else if (performance.now() - turnStart > turnMs) {
      await new Promise<void>(nextTurn)
    }
  }

  async function drain() {
    while (queue.length > 0) {
      await giveTurn()
      await gather()
      await commit(take())
    }
    running = false
  }

  function settledUpTo(upTo: number): Promise<void> {
    if (settled >= upTo) return Promise.resolve()
    return new Promise(resolve => flushes.push({ upTo, resolve }))
  }

  return {
    append(row) {
      if (closed) return Promise.reject(new QueueClosedError('The writer is closed and takes no more rows.'))
      if (appended - settled >= maxPending) {
        const said = `${maxPending} rows are already waiting to be written: the database is too slow, try again later.`
        return Promise.reject(new QueueFullError(said))
      }
      appended++
      return new Promise<Result>((resolve, reject) => {
        queue.push({ row, resolve, reject })
        if (running) return
        running = true
        void drain()
      })
    },
    flush: () => settledUpTo(appended),
    close() {
      closed = true
      return settledUpTo(appended)
    },
    get pending() {
      return appended - settled
    },
  }
}

interface LockWaitsOptions {
  longestWaitMs?: number
  wait?: (ms: number) => Promise<void>
  monotonic?: () => number
}

export type LockWaits = ReturnType<typeof lockWaits>

/**
 * Waits for the write lock of a file that another process holds. The engine's own wait stops this thread, and with it everything that
 * needs no lock; here only who needs it waits. One of them asks for the lock, the others stand behind it in the order of their coming.
 */
export function lockWaits({
  longestWaitMs = 10_000,
  wait = pause,
  monotonic = () => performance.now(),
}: LockWaitsOptions = {}) {
  const inTurn = writeQueue({ longestWaitMs })
  let waiting = 0

  async function untilFree<T>(act: () => Promise<T>, untilMs: number, met: boolean): Promise<T> {
    for (let tried = met ? 1 : 0; ; tried++) {
      // Half fixed, half random, so two processes that collided do not collide again in step.
      const ceiling = Math.min(250, 10 * 2 ** tried)
      if (tried > 0) await wait(ceiling / 2 + (Math.random() * ceiling) / 2)
      try {
        return await act()
      } catch (error) {
        if (!isLocked(error) || monotonic() >= untilMs) throw error
      }
    }
  }

  return {
    async run<T>(act: () => Promise<T>, onlyReads: () => boolean): Promise<T> {
      const met = waiting === 0 || onlyReads()
      if (met) {
        try {
          return await act()
        } catch (error) {
          if (!isLocked(error)) throw error
        }
      }
      const untilMs = monotonic() + longestWaitMs
      waiting++
      try {
        return await inTurn(() => untilFree(act, untilMs, met))
      } catch (error) {
        if (dbFault(error) !== 'busy') throw error
        return markUnavailable(() => Promise.reject(new StoreLockedError(error)))
      } finally {
        waiting--
      }
    },
  }
}

/** A transaction of this process that is open (TRANSACTION_ACTIVE) is no lock of another one. */
function isLocked(error: unknown): boolean {
  return (
    dbFault(error) === 'busy' && !(error instanceof Error && 'code' in error && error.code === 'TRANSACTION_ACTIVE')
  )
}
