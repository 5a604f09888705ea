import { type Log, rateLimitedLog } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { pause } from '../../shared/sql/db-fault.ts'
import { storeFault as storeFaultOf } from '../../shared/sql/store-faults.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { backoffDelay, nextTurn } from '../../shared/time/sleep.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { TailBreak } from './boot-check.ts'
import { checkpointRhythm } from './checkpoint-rhythm.ts'
import { checkpointer } from './checkpointer.ts'
import { type Committed, chainCommitter } from './commit.ts'
import type { LineSink } from './known-copies.ts'
import { writerLease } from './lease.ts'
import { type Entry, pendingWrites } from './pending-writes.ts'
import { pruneTenant } from './retention.ts'
import { savingsByDay } from './savings-days.ts'
import { type Spill, spillLine } from './spill.ts'
import { spillDrain } from './spill-drain.ts'
import { type WriterLimits, writerLimits } from './writer-limits.ts'
import { writerMetrics } from './writer-metrics.ts'

export interface TraceWriterOptions {
  db: Db
  clock: Clock
  log: Log
  metrics: Metrics
  mode: 'best-effort' | 'durable'
  /** Without one no checkpoints are made. */
  signer?: Signer
  /** Where records go when the store cannot take them; a host with files has one. */
  spill?: Spill
  sha256?: Sha256
  limits?: Partial<WriterLimits>
  sinks?: readonly LineSink[]
  /** Unique to this process. */
  holder?: string
  isGone?: (holder: string) => boolean
  /** `recorded` tells the outcome in either mode. */
  tells?: boolean
}

export interface WriterStatus {
  writer: 'ok' | string
  spill: 'ok' | string
  /** Chains that did not hold at the start; no checkpoints are made for them. */
  broken: readonly TailBreak[]
}

export type TraceWriter = Omit<ReturnType<typeof traceWriter>, 'sumUp'> & {
  /** Where another process writes: resolves when it has every record enqueued before. */
  taken?(): Promise<void>
}

/** Longest stretch of commits without giving the host a turn; the local driver never yields by itself. */
const TURN_MS = 10
/** A response that waits for its record waits at most this long for company. */
const GATHER_MS = 2
const LEASE_POLL_MS = 200
const SUM_UP_AFTER_MS = 30_000
const BACKOFF = { baseMs: 100, maxMs: 5000, jitter: false }

/**
 * The one writer of a process (docs/spec/router.md §9.2, §9.3). Requests hand records over and go on; batches are sealed and committed here, one
 * at a time. In durable mode `recorded` tells when a record is in the store or on the disk.
 */
export function traceWriter(options: TraceWriterOptions) {
  const { db, clock, log, metrics, mode, signer, spill, sha256 = portableSha256, sinks = [] } = options
  const limits = { ...writerLimits, ...options.limits }
  const durable = mode === 'durable'
  const gatherMs = durable ? Math.min(GATHER_MS, limits.flush_ms) : limits.flush_ms
  const holder = options.holder ?? crypto.randomUUID()
  const lease = writerLease({ db, clock, holder, ttlMs: limits.lease_ms, isGone: options.isGone ?? (() => false) })
  const committer = chainCommitter({
    db,
    lease,
    sha256,
    clock,
    setBack: (tenant, from, to) =>
      log.error(
        'the trace store has lost records that it had confirmed: it was restored, or its server lost its last commits; the chain goes on from what is there',
        { tenant, lastSeq: from, nowSeq: to },
      ),
  })
  const savings = savingsByDay({ db, clock })
  let summing: Promise<void> | undefined
  const counters = writerMetrics(metrics, {
    depth: () => depth(),
    lag: () => lag(),
    spillBytes: () => spill?.bytes() ?? 0,
  })
  const checkpoints =
    signer && checkpointer({ db, clock, log, signer, sha256, sinks, committer, made: () => counters.checkpoints.add() })
  const rhythm =
    checkpoints &&
    checkpointRhythm({
      db,
      log,
      sha256,
      committer,
      checkpoints,
      records: limits.checkpoint_records,
      seconds: limits.checkpoint_seconds,
      due() {
        checkpointsDue = true
        run()
      },
    })
  const drain = spill && spillDrain({ spill, log, commit: records => committer.commit(records, { lookUp: true }) })

  const queue: Entry[] = []
  const outcomes = pendingWrites()
  const { settle } = outcomes
  const say = rateLimitedLog(clock)
  let spilling = 0
  let running = false
  let closed = false
  let closeBy = Number.POSITIVE_INFINITY
  let timer: { id: ReturnType<typeof setTimeout>; due: number } | undefined
  let checkpointsDue = false
  let failures = 0
  let retryAt = 0
  let storeFault: string | undefined
  let spillFault: string | undefined
  const startedAt = clock.monotonic()
  let turnStart = startedAt
  let silent = 0

  // The next process has time for what is left in the spill file.
  const drains = () => !closed && drain?.pending() === true
  const depth = () => queue.length + spilling
  const lag = () => (queue[0] === undefined ? 0 : (clock.monotonic() - queue[0].at) / 1000)

  function enqueue(record: UnsealedTrace): 'queued' | 'dropped' | 'spilled' {
    if (closed || depth() >= limits.queue) {
      const why = closed ? 'the writer is closed' : 'the queue is full'
      if (!durable) return drop(why)
      const entry = outcomes.accept(record, clock.monotonic(), true)
      if (spill === undefined) {
        // Its answer is broken off; what answers asks for the outcome in this turn.
        setTimeout(() => settle(entry, new Error(why)), 0)
        return drop(why)
      }
      void spillEntries([entry])
      return 'spilled'
    }
    queue.push(outcomes.accept(record, clock.monotonic(), durable || options.tells === true))
    schedule(queue.length >= limits.batch ? 0 : gatherMs)
    return 'queued'
  }

  function drop(why: string): 'dropped' {
    counters.dropped.add()
    silent++
    say('dropped', () => {
      log.error(`trace records were dropped: ${why}`, { dropped: silent })
      silent = 0
    })
    return 'dropped'
  }

  async function spillEntries(entries: readonly Entry[]): Promise<void> {
    spilling += entries.length
    await Promise.all(
      entries.map(async entry => {
        try {
          if (spill === undefined) throw new Error('There is no spill file to keep the record in.')
          await spill.append(spillLine(entry.record))
          spillFault = undefined
          counters.spilled.add()
          drain?.more()
          settle(entry)
        } catch (error) {
          spillFault = message(error)
          drop('the spill file does not take them')
          settle(entry, error)
        }
        spilling--
      }),
    )
    if (!closed) schedule(Math.max(LEASE_POLL_MS, retryAt - clock.monotonic()))
  }

  function schedule(ms: number) {
    if (running) return
    const due = clock.monotonic() + ms
    if (timer !== undefined && timer.due <= due) return
    clearTimeout(timer?.id)
    timer = { id: setTimeout(run, ms), due }
  }

  function run() {
    clearTimeout(timer?.id)
    timer = undefined
    if (!running) void pump()
  }

  async function pump(): Promise<void> {
    running = true
    let next: number | undefined
    try {
      next = await work()
    } catch (error) {
      next = fail(error)
    }
    running = false
    if (next !== undefined) schedule(next)
    // What came at the last moment waits for company as usual, unless a caller waits for it.
    else if (queue.length > 0) schedule(outcomes.awaited || queue.length >= limits.batch ? 0 : gatherMs)
  }

  /** Commits until nothing is left. Returns when to come back if something had to wait. */
  async function work(): Promise<number | undefined> {
    turnStart = clock.monotonic()
    while (queue.length > 0 || drains() || checkpointsDue || (storeFault !== undefined && !closed)) {
      const wait = retryAt - clock.monotonic()
      if (wait > 0) return setAside(wait)
      if ((await committer.open()) === undefined) return setAside(LEASE_POLL_MS)
      await rhythm?.checkNew()
      if (drain !== undefined && drains()) {
        const drained = await drain.step(limits.batch)
        if (drained === undefined) return setAside(LEASE_POLL_MS)
        await note(drained)
      }
      if (queue.length > 0 && !(await commitBatch())) return setAside(LEASE_POLL_MS)
      if (checkpointsDue) {
        checkpointsDue = false
        await rhythm?.all()
        await beginSum()
      }
      failures = 0
      storeFault = undefined
      // None is needed now.
      spillFault = undefined
      if (lease.wanted && !closed) {
        await lease.release()
        return setAside(2 * LEASE_POLL_MS)
      }
      await giveTurn()
    }
    return undefined
  }

  async function commitBatch(): Promise<boolean> {
    const entries = queue.slice(0, limits.batch)
    const done = await committer.commit(entries.map(entry => entry.record))
    if (done === undefined) return false
    queue.splice(0, entries.length)
    const refused = new Map(done.refused.map(({ record, error }) => [record, error]))
    for (const entry of entries) settle(entry, refused.get(entry.record))
    for (const { record, error } of done.refused) {
      counters.dropped.add()
      log.error('a trace record cannot be sealed and was dropped', { trace_id: record.trace_id, error })
    }
    await note(done)
    return true
  }

  async function note({ tenants, written, late }: Pick<Committed, 'tenants' | 'written' | 'late'>) {
    counters.written.add(written)
    savings.reopened(late)
    await rhythm?.after(tenants)
  }

  /** Goes on beside commits. Not at the start, which others wait for. */
  async function beginSum() {
    if (summing !== undefined || closed || clock.monotonic() - startedAt < SUM_UP_AFTER_MS) return
    const term = await committer.open()
    if (term === undefined) return
    summing = savings
      .step([...committer.chains().keys()], term, () => closed)
      .catch((error: unknown) => log.warn('a day was not summed up and is tried again', { error }))
      .finally(() => {
        summing = undefined
      })
  }

  function fail(error: unknown): number {
    committer.forget()
    // The next try takes it anew, which writes: what only reads finds nothing wrong with a full disk.
    lease.lost()
    storeFault = storeFaultOf(error) ?? message(error)
    const wait = backoffDelay(BACKOFF, ++failures)
    retryAt = clock.monotonic() + wait
    say('store', () => log.error('the trace store failed; it is tried again', { error }))
    return setAside(wait)
  }

  /** The store cannot be written now: durable records go to the disk, others wait their turn. */
  function setAside(wait: number): number {
    const giveUp = clock.monotonic() >= closeBy
    if (durable && spill !== undefined) void spillEntries(queue.splice(0))
    else if (giveUp) {
      const why = 'the store did not answer before the end'
      for (const entry of queue.splice(0)) {
        drop(why)
        settle(entry, new Error(why))
      }
    }
    return wait
  }

  async function giveTurn() {
    if (clock.monotonic() - turnStart < TURN_MS) return
    await new Promise<void>(nextTurn)
    turnStart = clock.monotonic()
  }

  const settled = () => outcomes.all(run)

  /** Runs when no commit does. */
  async function alone<T>(act: () => Promise<T>): Promise<T> {
    while (running) await pause(1)
    running = true
    try {
      return await act()
    } finally {
      running = false
      // At once: by a timer, the next of many steps would be there before.
      if (queue.length > 0) run()
      else schedule(0)
    }
  }

  return {
    enqueue,
    /** Durable: resolves when the record is in the store or on the disk, rejects when it is in neither. Best effort: at once. */
    recorded: outcomes.outcomeOf,
    /** Resolves when every record taken before this call is written, spilled or given up. */
    flush: settled,
    /** The same, and nothing is being written any more: what is written ends with the request that it began in on some hosts. */
    async idle(): Promise<void> {
      for (;;) {
        await settled()
        await summing
        if (!running) return
        await pause(1)
      }
    },
    /** Reads the heads, checks the ends of the chains and starts on what an earlier process left in the spill file. */
    start() {
      drain?.more()
      checkpointsDue = checkpoints !== undefined
      run()
    },
    async close(): Promise<void> {
      if (closed) return settled()
      closed = true
      closeBy = clock.monotonic() + limits.close_ms
      rhythm?.stop()
      await settled()
      await summing
      await alone(async () => {
        if (await committer.open()) await rhythm?.all()
        await checkpoints?.copyOut()
        await lease.release()
      }).catch((error: unknown) => log.error('the last checkpoint could not be made', { error }))
      clearTimeout(timer?.id)
      timer = undefined
    },
    /** Drops the records of a tenant that are older than `before`, behind a signed checkpoint; tells how many. */
    async prune(tenant: string, before: Date): Promise<number> {
      await settled()
      const dropped = await pruneTenant(tenant, before, { checkpoints, rhythm, committer, alone })
      if (dropped > 0) savings.reopened([{ tenant, day: 0 }])
      return dropped
    },
    /** One day of each chain; the writer does it by itself with its checkpoints. */
    async sumUp(): Promise<void> {
      await alone(beginSum)
      await summing
    },
    lag,
    depth,
    status(): WriterStatus {
      return { writer: storeFault ?? 'ok', spill: spillFault ?? 'ok', broken: [...(rhythm?.broken.values() ?? [])] }
    },
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
