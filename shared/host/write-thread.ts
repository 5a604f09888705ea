import { once } from 'node:events'
import { isMainThread, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { networkVars } from '../env/read-env.ts'
import type { Db } from '../sql/db.ts'
import { forwardingDb, type WriteRequest, type WriteResult, writePerformer, writeProxy } from '../sql/forwarding-db.ts'
import { keepCompiled } from './keep-compiled.ts'
import { openDb } from './open-libsql.ts'

const ROLE = 'waybill-write-thread'
/** It keeps no object for longer than a commit takes. */
const YOUNG_MB = 8

/** Longer than the thread waits for the lock of another process. */
const LATE_MS = 2000
const SLOW = `the disk of the store has not taken a write for ${LATE_MS / 1000} s: look at the machine that it belongs to`

export interface WriteThreadOptions {
  /** Of a server. */
  token?: string
  /** The thread ended by itself: what was on its way may have been written or not. */
  lost: (why: string) => void
  started?: (worker: Worker) => void
}

export interface ThreadedDb extends Db {
  /** From then on the thread makes the commits. */
  ready: Promise<void>
}

type ToThread = { begin: string } | WriteRequest | { close: true }
type FromThread = { ready: true } | { refused: string } | WriteResult

/**
 * A database. Where it is in a file, its commits are made by a thread of their own, over a connection of its own: the driver is synchronous, and a commit holds its
 * thread up until the disk has it. Until that thread is ready, writes are made here.
 */
export async function openWithWriteThread(
  url: string,
  { lost, started = () => undefined, ...options }: WriteThreadOptions,
): Promise<ThreadedDb> {
  const db = await openDb(url, options)
  if (db.kind !== 'file') return { ...db, ready: Promise.resolve() }
  const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_MB }
  const worker = new Worker(new URL(import.meta.url), {
    workerData: ROLE,
    execArgv: [],
    env: networkVars(process.env),
    resourceLimits,
  })
  started(worker)
  const post = (message: ToThread) => worker.postMessage(message)
  // The process ends when nothing but a thread without work is left of it.
  const writes = writeProxy(post, () => (writes.size > 0 || isClosing ? worker.ref() : worker.unref()))
  worker.unref()
  const ready = Promise.withResolvers<void>()
  let isReady = false
  let isClosing = false

  function ended(why: string): void {
    writes.lost()
    if (!isClosing) lost(why)
    isClosing = true
  }
  worker.on('message', (message: FromThread) => {
    if ('ready' in message) {
      isReady = true
      ready.resolve()
    } else if ('refused' in message) ended(message.refused)
    else writes.heard(message)
  })
  worker.on('error', error => ended(error instanceof Error ? error.message : String(error)))
  worker.on('exit', code => ended(`it ended with ${code}`))
  post({ begin: url })

  return {
    ...forwardingDb(db, {
      async write(statements, alone) {
        // The thread is gone, or about to be: it would not answer.
        if (isClosing) throw Object.assign(new Error('The client is closed'), { code: 'CLIENT_CLOSED' })
        if (isReady) return writes.write(statements, alone)
        return alone ? [await db.execute(statements[0]!)] : db.write(statements)
      },
      writable: () => (isReady ? inTime(writes.writable()) : db.writable()),
    }),
    ready: ready.promise,
    async close() {
      if (!isClosing) {
        isClosing = true
        const gone = once(worker, 'exit')
        worker.ref()
        post({ close: true })
        await gone
      }
      await db.close()
    },
  }
}

/** A disk that does not answer would keep the caller waiting with the thread. */
async function inTime(answer: Promise<void>): Promise<void> {
  let late: ReturnType<typeof setTimeout> | undefined
  const tooLong = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error(SLOW)), LATE_MS)
  })
  await Promise.race([answer, tooLong]).finally(() => clearTimeout(late))
}

/** The program of the thread. Orders are carried out as they come; those that meet the lock of another process wait in that order. */
function serveWrites(port: MessagePort): void {
  const say = (message: FromThread) => port.postMessage(message)
  const underWay = new Set<Promise<void>>()
  const perform = writePerformer()
  let db: Db | undefined

  async function begin(path: string): Promise<void> {
    db = await openDb(path)
    say({ ready: true })
  }

  async function close(): Promise<void> {
    await Promise.all(underWay)
    await db?.close()
    port.close()
  }

  function write(order: WriteRequest): Promise<void> {
    if (db === undefined) throw new Error('an order came before its store')
    const one = perform(db, order).then(say)
    underWay.add(one)
    return one.finally(() => underWay.delete(one))
  }

  port.on('message', async (message: ToThread) => {
    try {
      if ('begin' in message) await begin(message.begin)
      else if ('close' in message) await close()
      else await write(message)
    } catch (error) {
      say({ refused: error instanceof Error ? error.message : String(error) })
      process.exit(1)
    }
  })
}

// The other side: this file is also the program of the thread, so that source and build need no second path.
if (!isMainThread && workerData === ROLE && parentPort !== null) {
  keepCompiled()
  serveWrites(parentPort)
}
