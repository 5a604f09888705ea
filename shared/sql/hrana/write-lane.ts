import type { ResultSet } from '@libsql/client/web'
import { refusedBy, StoreServerError } from './server-error.ts'
import { batchOf, type HranaStream } from './stream.ts'
import { fromWire, type StreamRequest, type StreamResult, type WireRows, type WireStatement } from './wire.ts'
import { planGroup, readGroup, type UnitOutcome } from './write-group.ts'

/** Bounds of what is written together. A transaction that takes a server 5 s is ended by it. */
const MOST_STATEMENTS = 400
const MOST_BYTES = 4 * 1024 * 1024
const LONGEST_WAIT_MS = 10_000

/** Words that begin a statement which may stand in a transaction beside those of others. */
const JOINS = /^\s*(?:insert|update|delete|replace|with|select|values|create|drop|alter)\b/i

export interface WriteLaneOptions {
  /** The stream of the transactions. */
  stream: HranaStream
  /** A stream for one request: what it sets ends with it. */
  once: () => HranaStream
  /** Around every request. */
  timed?: <T>(write: () => Promise<T>) => Promise<T>
  longestWaitMs?: number
  monotonic?: () => number
}

interface Waiting {
  statements: readonly WireStatement[]
  bytes: number
  /** How it is written: with others, in a transaction of its own, or as it stands, without one. */
  kind: 'joined' | 'alone' | 'plain'
  script: string | undefined
  sinceMs: number
  resolve: (results: ResultSet[]) => void
  reject: (error: unknown) => void
}

export type WriteLane = ReturnType<typeof writeLane>

/**
 * The writes of a process, one transaction at a time: a server has one writer anyway, and those that wait for it there cost it more than
 * those that wait here. All that waits goes in the next transaction, each unit behind a savepoint of its own.
 */
export function writeLane({
  stream,
  once,
  timed = write => write(),
  longestWaitMs = LONGEST_WAIT_MS,
  monotonic = () => performance.now(),
}: WriteLaneOptions) {
  const queue: Waiting[] = []
  let writing = false
  let late: ReturnType<typeof setTimeout> | undefined

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      await gather(queue)
      const group = takeGroup(queue)
      const alone = group.length === 1 ? group[0] : undefined
      if (alone?.kind === 'plain') await writePlain(alone, send => timed(() => once().send(send)))
      else await writeTogether(group)
    }
    writing = false
    clearTimeout(late)
    late = undefined
  }

  async function writeTogether(group: readonly Waiting[]): Promise<void> {
    const outcomes = await transact(group)
    for (const [at, unit] of group.entries()) {
      const outcome = outcomes[at]
      if (outcome?.type === 'again') await writeTogether([unit])
      else settle(unit, outcome)
    }
  }

  async function transact(group: readonly Waiting[]): Promise<UnitOutcome[]> {
    try {
      const plan = planGroup(group.map(({ statements }) => statements))
      const [result] = await timed(() => stream.send([{ type: 'batch', batch: { steps: plan.steps } }]))
      if (result?.type === 'ok') return readGroup(plan, batchOf(result))
      // The batch broke off, and its transaction would hold the lock.
      await stream.close()
      const error = refusedBy(result?.error ?? { message: 'the server gave no answer' })
      // An answer is made of rows, which come before the commit: nothing was kept.
      const undone = error.code === 'RESPONSE_TOO_LARGE' && group.length > 1
      return group.map(() => (undone ? { type: 'again' } : { type: 'failed', error }))
    } catch (error) {
      const refused = group.length > 1 && isTooBig(error)
      return group.map(() => (refused ? { type: 'again' } : { type: 'failed', error }))
    }
  }

  /** Rejects what has waited for too long; of what has not been sent, nothing was done. */
  function expire(): void {
    late = undefined
    const nowMs = monotonic()
    while (queue[0] !== undefined && nowMs - queue[0].sinceMs >= longestWaitMs) {
      const seconds = longestWaitMs / 1000
      const message = `The store did not take this write within ${seconds} s: try again later.`
      queue.shift()?.reject(new StoreServerError(message, 'SQLITE_BUSY'))
    }
    watch()
  }

  function watch(): void {
    const [first] = queue
    if (late !== undefined || first === undefined) return
    late = setTimeout(expire, Math.max(1, first.sinceMs + longestWaitMs - monotonic()))
  }

  function add(unit: Pick<Waiting, 'statements' | 'kind' | 'script'>): Promise<ResultSet[]> {
    return new Promise((resolve, reject) => {
      const bytes = unit.statements.reduce((sum, stmt) => sum + bytesOf(stmt), 0)
      queue.push({ ...unit, bytes, sinceMs: monotonic(), resolve, reject })
      if (writing) return watch()
      writing = true
      void drain()
    })
  }

  return {
    /** All of the statements or none. */
    transaction(statements: readonly WireStatement[]): Promise<ResultSet[]> {
      const joins = statements.every(({ sql }) => JOINS.test(sql))
      return add({ statements, kind: joins ? 'joined' : 'alone', script: undefined })
    },
    /** One statement, in a transaction only where it may be in one. */
    async execute(statement: WireStatement): Promise<ResultSet> {
      const kind = JOINS.test(statement.sql) ? 'joined' : 'plain'
      const [result] = await add({ statements: [statement], kind, script: undefined })
      return result as ResultSet
    },
    /** Statements that manage their own transaction. What they leave open ends with them. */
    async script(sql: string): Promise<void> {
      await add({ statements: [], kind: 'plain', script: sql })
    },
    close: () => stream.close(),
  }
}

/** Callers whose write was just answered come back a few promise hops later, and belong to the next group. */
async function gather(queue: readonly Waiting[]): Promise<void> {
  for (let quiet = 0; quiet < 4; ) {
    const before = queue.length
    await null
    quiet = queue.length === before ? quiet + 1 : 0
  }
}

/** What goes in the next transaction. */
function takeGroup(queue: Waiting[]): Waiting[] {
  let [count, statements, bytes] = [0, 0, 0]
  for (const unit of queue) {
    statements += unit.statements.length
    bytes += unit.bytes
    const fits = unit.kind === 'joined' && statements <= MOST_STATEMENTS && bytes <= MOST_BYTES
    if (count > 0 && !fits) break
    count++
    if (unit.kind !== 'joined') break
  }
  return queue.splice(0, count)
}

/** A statement or a script as it stands, on a stream of its own. */
async function writePlain(unit: Waiting, send: (requests: StreamRequest[]) => Promise<StreamResult[]>): Promise<void> {
  const [stmt] = unit.statements
  const request: StreamRequest =
    stmt === undefined ? { type: 'sequence', sql: unit.script ?? '' } : { type: 'execute', stmt }
  try {
    const [result] = await send([request, { type: 'close' }])
    settle(unit, outcomeOf(result as StreamResult, stmt !== undefined))
  } catch (error) {
    unit.reject(error)
  }
}

function settle(unit: Waiting, outcome: UnitOutcome | undefined): void {
  if (outcome?.type === 'done') unit.resolve(outcome.results)
  else unit.reject(outcome?.type === 'failed' ? outcome.error : new Error('a write has no outcome'))
}

function outcomeOf(result: StreamResult, rows: boolean): UnitOutcome {
  if (result.type === 'error') return { type: 'failed', error: refusedBy(result.error) }
  return { type: 'done', results: rows ? [fromWire(result.response.result as WireRows)] : [] }
}

/** It was refused for its size before it was read. */
const isTooBig = (error: unknown): boolean => error instanceof StoreServerError && error.code === 'SQLITE_TOOBIG'

/** About the bytes of a statement on the wire; the numbers in it are small. */
function bytesOf({ sql, args = [] }: WireStatement): number {
  let bytes = sql.length
  for (const value of args) {
    if (value.type === 'text') bytes += value.value.length
    else if (value.type === 'blob') bytes += value.base64.length
    else bytes += 16
  }
  return bytes
}
