import type { Client, InArgs, TransactionMode } from '@libsql/client/web'
import { reads } from '../guarded-client.ts'
import { type ReadLane, readLane } from './read-lane.ts'
import { StoreServerError } from './server-error.ts'
import { type HranaTransport, hranaStream } from './stream.ts'
import { bare, type Statement, toWire } from './wire.ts'
import { type WriteLane, writeLane } from './write-lane.ts'
import { type WriteHealth, writeWatch } from './write-watch.ts'

export interface ServerClientOptions {
  url: string
  transport: HranaTransport
  monotonic?: () => number
  /** After how long a write without an answer is suspected. */
  stuckAfterMs?: number
}

export interface ServerClient extends Client {
  readonly writes: WriteHealth
}

/** Streams for reads. The first one that is free is used, so a quiet process has one. */
const READERS = 2

/**
 * A client of a libSQL server that keeps its streams. The package's own client opens one for each call, and most of what a server then
 * does is opening a database. Ends with `close`, which tells the server to forget the streams.
 */
export function serverClient(options: ServerClientOptions): ServerClient {
  const { url, transport, monotonic, stuckAfterMs } = options
  const open = () => hranaStream({ url, transport, ...(monotonic && { monotonic }) })
  const watch = writeWatch({
    read: () => freest().execute(bare('select 1')),
    ...(stuckAfterMs !== undefined && { afterMs: stuckAfterMs }),
  })
  const makeWriter = () => writeLane({ stream: open(), once: open, timed: watch.timed })
  let writer = makeWriter()
  let lanes = Array.from({ length: READERS }, () => readLane(open()))

  const freest = () => lanes.reduce((best, one) => (one.ahead < best.ahead ? one : best))
  const forget = () => Promise.all([writer, ...lanes].map(one => one.close()))

  return hranaClient({
    health: watch.health,
    reader: freest,
    writer: () => writer,
    async renew() {
      const before = forget()
      writer = makeWriter()
      lanes = Array.from({ length: READERS }, () => readLane(open()))
      await before
    },
    async end() {
      await forget()
      await transport.close()
    },
  })
}

/** Who carries the statements of a client out. */
export interface HranaLanes {
  health: WriteHealth
  reader: () => Pick<ReadLane, 'execute' | 'batch'>
  writer: () => Pick<WriteLane, 'execute' | 'transaction' | 'script'>
  /** Everything anew. */
  renew: () => Promise<void>
  end: () => Promise<void>
}

/** The package's interface over them. */
export function hranaClient({ health, reader, writer, renew, end }: HranaLanes): ServerClient {
  let closed = false

  function usable(): void {
    if (closed) throw new StoreServerError('The client is closed', 'CLIENT_CLOSED')
  }

  return {
    writes: health,
    async execute(stmt: Statement, args?: InArgs) {
      usable()
      const statement = toWire(typeof stmt === 'string' && args !== undefined ? [stmt, args] : stmt)
      return reads(statement.sql) ? reader().execute(statement) : writer().execute(statement)
    },
    async batch(stmts: readonly Statement[], mode: TransactionMode = 'deferred') {
      usable()
      const statements = stmts.map(toWire)
      return mode === 'read' ? reader().batch(statements) : writer().transaction(statements)
    },
    async executeMultiple(sql: string) {
      usable()
      return writer().script(sql)
    },
    migrate: () => refuse('migration'),
    transaction: () => refuse('interactive transaction'),
    sync: () => refuse('sync'),
    async reconnect() {
      await renew()
      closed = false
    },
    /** A promise, for a host whose connections end with what it awaits. */
    async close() {
      if (closed) return
      closed = true
      await end()
    },
    get closed() {
      return closed
    },
    protocol: 'http',
  }
}

/** What would hold the only writer of a server across the caller's own waiting. */
function refuse(what: string): Promise<never> {
  const message = `A libSQL server takes no ${what} through this client: give all of the statements at once, with batch().`
  return Promise.reject(new StoreServerError(message, 'NOT_SUPPORTED'))
}
