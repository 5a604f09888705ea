import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { isMainThread, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { TRACE } from '../../shared/proof/members.ts'
import type { Db } from '../../shared/sql/db.ts'
import { type CheckedStretch, stretchCheck } from '../traces/check-stretch.ts'
import { readLine } from '../traces/record-reader.ts'
import { type SeqSpan, seqSpans, storedRecords, storedStretch } from '../traces/stored-records.ts'
import { checkedLots, type WantedHashes } from '../traces/verify.ts'

const ROLE = 'waybill-verify-thread'
/** Records of one job: its ids are the only thing that travels and grows with it. */
const STRETCH = 4096
const MAX_THREADS = 4
/** So many jobs take as long as a thread takes to start. */
const WORTH_IT = 5

interface Job {
  span: Required<SeqSpan>
  wanted: number[]
}

type Done = { stretch: CheckedStretch } | { failed: string }

export interface ThreadedCheck {
  /** Address of the store that `db` was opened at. */
  address: string
  tenant?: string | undefined
  /** Test seams: records of one job, and how many threads there are. */
  stretch?: number
  threads?: number
}

/**
 * The records of a store's file, checked in as many threads as the machine has room for: parsing and hashing a million of them keeps one
 * processor busy for half a minute. Each thread checks stretches by itself; verify joins them in order. A small store is checked here.
 */
export function verifiedInThreads(
  db: Db,
  options: ThreadedCheck,
): (wanted: WantedHashes) => AsyncIterable<CheckedStretch> {
  return wanted => checked(db, options, wanted)
}

async function* checked(
  db: Db,
  { address, tenant, stretch = STRETCH, threads: most }: ThreadedCheck,
  wanted: WantedHashes,
): AsyncGenerator<CheckedStretch> {
  const spans = await seqSpans(db, tenant, stretch)
  if (most === undefined && spans.length < WORTH_IT) {
    yield* checkedLots(storedRecords(db, tenant), { wanted, only: tenant, sha256: nativeSha256 })
    return
  }
  const size = Math.min(most ?? Math.min(MAX_THREADS, availableParallelism()), spans.length)
  const threads = Array.from({ length: size }, () => verifyThread(address))
  try {
    // Two jobs for each thread are under way: one in work, one at hand.
    const open: Promise<CheckedStretch>[] = []
    /** Of the chain that is at hand, the newest first: each is looked at once, and there is one in 256 records. */
    let asked: { tenant: string; left: number[] } | undefined
    for (const [index, span] of spans.entries()) {
      if (asked?.tenant !== span.tenant) {
        asked = { tenant: span.tenant, left: [...wanted(span.tenant).keys()].sort((a, b) => b - a) }
      }
      const inside: number[] = []
      while ((asked.left.at(-1) ?? Number.POSITIVE_INFINITY) <= span.to) inside.push(asked.left.pop()!)
      const job = threads[index % threads.length]!.check({ span, wanted: inside })
      // What failed is said when its turn comes.
      job.catch(() => undefined)
      open.push(job)
      if (open.length >= 2 * threads.length) yield await open.shift()!
    }
    for (const job of open) yield await job
  } finally {
    await Promise.all(threads.map(thread => thread.close()))
  }
}

function verifyThread(path: string) {
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { role: ROLE, path },
    execArgv: [],
    env: {},
    // Pages come and go, and those that went are kept until this space is full (measured: with 24 the process takes 15 MiB more in the
    // same time, with 6 a fifth more time).
    resourceLimits: { maxYoungGenerationSizeMb: 12 },
  })
  const waiting: { resolve(stretch: CheckedStretch): void; reject(error: Error): void }[] = []
  const fail = (error: Error) => {
    for (const one of waiting.splice(0)) one.reject(error)
  }
  worker.on('message', (done: Done) => {
    const next = waiting.shift()
    if ('stretch' in done) next?.resolve(done.stretch)
    else next?.reject(new Error(done.failed))
  })
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('a verify thread ended')))
  return {
    check: (job: Job) =>
      new Promise<CheckedStretch>((resolve, reject) => {
        waiting.push({ resolve, reject })
        worker.postMessage(job)
      }),
    /** After what it is working on: ended in the middle of a statement, the driver ends the whole process (tried). */
    async close() {
      if (worker.threadId < 0) return
      const ended = once(worker, 'exit')
      worker.postMessage('end')
      await ended.catch(() => undefined)
    },
  }
}

/** The other side. */
function serve(port: MessagePort, path: string): void {
  const opened = openDb(path, { readOnly: true })
  opened.catch(() => undefined)

  async function run({ span, wanted }: Job): Promise<CheckedStretch> {
    const { stretch, push } = stretchCheck(span.tenant, new Set(wanted), nativeSha256)
    for await (const lot of storedStretch(await opened, span))
      for (const line of lot) push(line, readLine(line.text, TRACE))
    return stretch
  }

  let last: Promise<unknown> = Promise.resolve()
  port.on('message', (job: Job | 'end') => {
    if (job === 'end') {
      // Jobs without a waiting caller are few: two for each thread.
      void last.then(async () => {
        await opened.then(db => db.close()).catch(() => undefined)
        port.close()
      })
      return
    }
    last = last
      .then(() => run(job))
      .then(
        stretch => port.postMessage({ stretch } satisfies Done, [stretch.traceIds.words.buffer]),
        (error: unknown) =>
          port.postMessage({ failed: error instanceof Error ? error.message : String(error) } satisfies Done),
      )
  })
}

const data: unknown = workerData
if (!isMainThread && parentPort !== null && typeof data === 'object' && data !== null && 'role' in data) {
  const { role, path } = data as { role: unknown; path?: unknown }
  if (role === ROLE && typeof path === 'string') serve(parentPort, path)
}
