/**
 * What a failed statement says about the database:
 * - `busy`: nothing was written and the same statement may succeed in a moment;
 * - `statement`: nothing was written because the database (or our own code before it) refused the statement or its values;
 * - `unknown`: the connection, the disk or the server failed. A commit may or may not have happened, so it must not be repeated blindly.
 */
export type DbFault = 'busy' | 'statement' | 'unknown'

// TRANSACTION_ACTIVE: the single local connection is held by an interactive transaction; it frees up.
const busyCodes = new Set(['SQLITE_BUSY', 'SQLITE_LOCKED', 'TRANSACTION_ACTIVE'])

// SQLITE_UNKNOWN is how a libSQL server reports a plain SQL error such as a missing table.
const statementCodes = new Set([
  'SQLITE_CONSTRAINT',
  'SQLITE_ERROR',
  'SQLITE_MISMATCH',
  'SQLITE_TOOBIG',
  'SQLITE_RANGE',
  'SQLITE_READONLY',
  'SQLITE_UNKNOWN',
  'SQL_PARSE_ERROR',
  'SQL_NO_STATEMENT',
  'SQL_MANY_STATEMENTS',
  'ARGS_INVALID',
  // Of a libSQL server, which undoes what would answer with more than 10 MB.
  'RESPONSE_TOO_LARGE',
])

/** Sorts an error of a libSQL client (or of code that ran before it) into one of three; anything unrecognised from a client is `unknown`. */
export function dbFault(error: unknown): DbFault {
  const code = errorCode(error)
  if (code !== undefined) {
    if (busyCodes.has(code)) return 'busy'
    return statementCodes.has(code) ? 'statement' : 'unknown'
  }
  const message = error instanceof Error ? error.message : String(error)
  if (/database (table )?is locked|SQLITE_BUSY/i.test(message)) return 'busy'
  // `fetch` has no error codes; these are the words of Node, workerd and browsers, and of the native driver's own failures.
  if (/fetch|network|socket|connection|timed? ?out|aborted|closed/i.test(message)) return 'unknown'
  return 'statement'
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  // The native driver leaves an empty code on failures it has no number for.
  return typeof error.code === 'string' && error.code !== '' ? error.code : undefined
}

/** Whether the disk had no room: nothing was written, and the same may succeed when there is some. */
const isOutOfRoom = (error: unknown): boolean => errorCode(error) === 'SQLITE_FULL'

/** A libSQL server answers with 10 MB at most. */
export const isTooLarge = (error: unknown): boolean => errorCode(error) === 'RESPONSE_TOO_LARGE'

/** Nothing was written: another process held the lock for longer than is waited for. */
export class StoreLockedError extends Error {
  override name = 'StoreLockedError'
  readonly code = 'SQLITE_BUSY'

  constructor(cause?: unknown) {
    super('The store is locked by another process: end what holds its file, or try again later.', { cause })
  }
}

export interface BusyRetry {
  /** How often a busy statement is tried again before its error is passed on. */
  retries?: number
  /** Also where the connection itself has waited for the lock. */
  afterWaiting?: boolean
  /** Test seam for the pause between tries. */
  wait?: (ms: number) => Promise<void>
}

/** Runs `act`, again after a growing pause while the database says busy. Six retries wait about 1.3 s in all. */
export async function retryBusy<T>(
  act: () => Promise<T>,
  { retries = 6, afterWaiting = false, wait = pause }: BusyRetry = {},
): Promise<T> {
  for (let tried = 0; ; tried++) {
    try {
      return await act()
    } catch (error) {
      if (tried >= retries || dbFault(error) !== 'busy') throw error
      if (error instanceof StoreLockedError && !afterWaiting) throw error
      // Half fixed, half random, so two processes that collided do not collide again in step.
      const ceiling = Math.min(500, 20 * 2 ** tried)
      await wait(ceiling / 2 + (Math.random() * ceiling) / 2)
    }
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

/**
 * Whether a transaction failed because a condition of it did not hold: a statement that puts null where none may be stands for the
 * condition, since SQLite has no other way to end a transaction from within.
 */
export function isFailedCondition(error: unknown, column: `${string}.${string}`): boolean {
  return error instanceof Error && error.message.includes(`NOT NULL constraint failed: ${column}`)
}

export const isMissingTable = (error: unknown, table: string): boolean =>
  error instanceof Error && new RegExp(`no such table: (?:main\\.)?${table}\\b`).test(error.message)

type DbOpenProblem =
  | 'missing' // no file (or no folder) at that path, or no server at that address
  | 'not_a_file' // the path is a folder or a device
  | 'no_permission' // the account of this process may not read or write there, or the server refused the token
  | 'network_disk' // other machines may open the file as well
  | 'not_a_database' // the file holds something else, or is damaged
  | 'busy' // another process kept the file locked
  | 'bad_url' // not an address this program can open

/** A database that could not be opened. The message is one sentence for the person at the terminal: print it without a stack. */
export class DbOpenError extends Error {
  override name = 'DbOpenError'
  readonly problem: DbOpenProblem

  constructor(problem: DbOpenProblem, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.problem = problem
  }
}

const away = new WeakSet<Error>()

/** What the triggers of a database say that a tenant is leaving. */
export const MOVING = 'the tenant is being moved to another database: try again in a moment'

export const isMoving = (error: unknown): boolean => error instanceof Error && error.message.includes(MOVING)

/** Runs a statement on a server; where the server could not be reached, did not answer or had no time, the error is known as that from then on. */
export async function markUnavailable<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Error && dbFault(error) !== 'statement') away.add(error)
    throw error
  }
}

/** True where the store was not reached: nothing is wrong with what was asked, and asking again later may go well. */
export function isStoreUnavailable(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) if (away.has(one)) return true
  return false
}

const AGAIN_MS = 250

/** Does it again until the store is there for it: one that is away or has no room is waited for. */
export async function waitingForStore<T>(act: (isAgain: boolean) => Promise<T>, waits: () => boolean): Promise<T> {
  for (let isAgain = false; ; isAgain = true) {
    try {
      return await act(isAgain)
    } catch (error) {
      if (!waits() || !(isStoreUnavailable(error) || isOutOfRoom(error))) throw error
      await pause(AGAIN_MS)
    }
  }
}
