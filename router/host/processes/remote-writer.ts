import { setTimeout as pause } from 'node:timers/promises'
import { type Log, rateLimitedLog } from '../../../shared/log/log.ts'
import type { Metrics } from '../../../shared/metrics/metrics.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import { type Entry, pendingWrites } from '../../traces/pending-writes.ts'
import type { TraceWriter, WriterStatus } from '../../traces/writer.ts'
import { writerLimits } from '../../traces/writer-limits.ts'
import { writerMetrics } from '../../traces/writer-metrics.ts'
import type { ToWriter } from './messages.ts'
import { WRITER_WAIT_MS, writerLink } from './writer-link.ts'

export interface RemoteWriterOptions {
  path: string
  durable: boolean
  store: StoreSettings
  clock: Clock
  log: Log
  metrics: Metrics
}

const LOOK_MS = 1000
/** A process that is not stopped has answered by then. */
const SILENT_MS = 2000

/**
 * The writer of another process. Each record is held here until that process has stored it, so its end loses none that this one gave it: a
 * new one is given them again, and looks up what is in the store already.
 */
export function remoteWriter({ path, durable, store, clock, log, metrics }: RemoteWriterOptions): TraceWriter {
  const outcomes = pendingWrites()
  const frames = new Map<number, Entry[]>()
  const say = rateLimitedLog(clock)
  let gathered: Entry[] = []
  let turn: ReturnType<typeof setImmediate> | undefined
  let count = 0
  let depth = 0
  let unsaid = 0
  let closed = false
  let status: WriterStatus = { writer: 'starting', spill: 'ok', broken: [] }
  const lag = () => {
    const first = frames.values().next().value?.[0] ?? gathered[0]
    return first === undefined ? 0 : (clock.monotonic() - first.at) / 1000
  }
  const counters = writerMetrics(metrics, { depth: () => depth, lag, spillBytes: () => 0 })
  const link = writerLink({
    path,
    begin: (): ToWriter[] => [{ begin: store }, ...[...frames].map(([frame, entries]) => toFrame(frame, entries))],
    heard(message) {
      if ('done' in message) settled(message.done, message.lost)
      else if ('status' in message) status = message.status
    },
  })
  const silence = silenceOf(link, clock)
  const look = setInterval(() => {
    if (durable) giveUp()
    silence.look()
  }, LOOK_MS)

  function enqueue(record: UnsealedTrace): 'queued' | 'dropped' {
    if (closed || (!durable && depth >= store.queue)) {
      counters.dropped.add()
      unsaid++
      say('dropped', () => {
        log.error('trace records were dropped: the queue is full', { dropped: unsaid })
        unsaid = 0
      })
      return 'dropped'
    }
    depth++
    gathered.push(outcomes.accept(record, clock.monotonic(), durable))
    turn ??= setImmediate(handOver)
    return 'queued'
  }

  function handOver(): void {
    clearImmediate(turn)
    turn = undefined
    if (gathered.length === 0) return
    const entries = gathered
    gathered = []
    frames.set(++count, entries)
    link.post(toFrame(count, entries))
  }

  function settled(frame: number, lost: readonly { id: string; why: string }[]): void {
    const entries = frames.get(frame) ?? []
    frames.delete(frame)
    depth -= entries.length
    const why = new Map(lost.map(({ id, why }) => [id, new Error(why)]))
    for (const entry of entries) outcomes.settle(entry, why.get(entry.record.trace_id))
  }

  /** Who waits for a record hears that it is not kept yet. It goes on being offered. */
  function giveUp(): void {
    if (Math.max(link.downMs, silence.ms()) >= WRITER_WAIT_MS) for (const entries of frames.values()) rejectAll(entries)
  }

  return {
    enqueue,
    recorded: outcomes.outcomeOf,
    flush: () => outcomes.all(handOver),
    idle: () => outcomes.all(handOver),
    async taken() {
      handOver()
      await link.ask({ taken: true }).catch(() => undefined)
    },
    start: () => undefined,
    async close() {
      closed = true
      handOver()
      await atMost(writerLimits.close_ms, outcomes.all(handOver))
      if (depth > 0) {
        counters.dropped.add(depth)
        log.error('trace records were lost: the process that writes did not take them before the end', { lost: depth })
      }
      clearInterval(look)
      link.close()
    },
    prune: () => Promise.reject(new Error('Only the process that writes receipts drops old ones.')),
    lag,
    depth: () => depth,
    status() {
      if (link.downMs > 0) return { ...status, writer: 'the process that writes is being started' }
      return silence.ms() > SILENT_MS ? { ...status, writer: 'the process that writes does not answer' } : status
    },
  }
}

/** For how long the other process has said nothing. One that is stopped keeps its connections: only its answers say that it is not. */
function silenceOf({ ask }: Pick<ReturnType<typeof writerLink>, 'ask'>, clock: Clock) {
  let askedAt: number | undefined
  function asked(): void {
    ask({ taken: true }).then(() => {
      askedAt = undefined
    }, asked)
  }
  return {
    look(): void {
      if (askedAt !== undefined) return
      askedAt = clock.monotonic()
      asked()
    },
    ms: () => (askedAt === undefined ? 0 : clock.monotonic() - askedAt),
  }
}

/** Waits for work to end, and for `ms` at most. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  const limit = pause(ms, undefined, { signal: over.signal }).catch(() => undefined)
  await Promise.race([work, limit])
  over.abort()
}

function rejectAll(entries: readonly Entry[]): void {
  const error = new Error('the process that writes receipts does not answer')
  for (const entry of entries) entry.reject?.(error)
}

const toFrame = (frame: number, entries: readonly Entry[]): ToWriter => ({
  frame,
  records: entries.map(({ record }) => record),
})
