import { setTimeout as pause } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { rateLimitedLog } from '../../../shared/log/log.ts'
import type { Metrics } from '../../../shared/metrics/metrics.ts'
import { writeProxy } from '../../../shared/sql/forwarding-db.ts'
import { spanCounters } from '../../../shared/telemetry/exporter.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { MetricDelta } from '../../metrics/metrics-relay.ts'
import { traceMetrics } from '../../metrics/trace-metrics.ts'
import type { EndedCall } from '../../observe/ended-call.ts'
import type { Observation } from '../../observe/observation.ts'
import { bytesOf, isRaw, type Packable, packCalls, readForTravel } from '../../observe/packed-calls.ts'
import type { RecordSettings } from '../../observe/record-maker.ts'
import { packRecords } from '../../receipt/packed-records.ts'
import { bytesToHash, finished, idOf, type Recorded, type Unhashed } from '../../receipt/unhashed.ts'
import type { InThreadReceipts, Receipts, ReceiptsDeps } from '../../receipts.ts'
import { writerLimits } from '../../traces/writer-limits.ts'
import { writerMetrics } from '../../traces/writer-metrics.ts'
import { inFlightBytes } from './in-flight.ts'
import type { FromThread, Question, ReceiptLocation, ThreadReport, ToThread } from './messages.ts'

export interface ReceiptThreadClientDeps extends ReceiptsDeps {
  worker: Worker
  place: ReceiptLocation
  /** A registry that may be asked for the same family again, and what adds the thread's figures to it. */
  metrics: Metrics
  apply: (deltas: readonly MetricDelta[]) => void
  here: () => Promise<InThreadReceipts>
  ready: PromiseWithResolvers<void>
}

/** A call or a record that was handed over. */
type Item = { call: Packable } | { record: Recorded }

interface Wait {
  item: Item | undefined
  resolve: () => void
  reject: (error: unknown) => void
}

/** Calls are gathered for so long, or until there are so many: each message wakes a thread. */
const GATHER_MS = 20
const GATHER_CALLS = 128
/** Beyond the time that the writer gives a store that does not answer. */
const CLOSE_GRACE_MS = 5000

/**
 * The near side of the receipt thread. It hands over ended calls and finished records, counts what is on its way, and answers for the
 * thread: when the thread ends, what it held is counted as lost, or in durable mode taken up again, and receipts are kept here.
 */
export function receiptThreadClient(deps: ReceiptThreadClientDeps): Receipts {
  const { worker, place, db, receiptStorage, store, clock, log, hashing, ready } = deps
  const { durable } = receiptStorage
  const out = inFlightBytes(clock)
  const counters = writerMetrics(deps.metrics, {
    depth: () => out.count + waiting.length,
    lag: () => out.lag,
    spillBytes: () => latest.spillBytes,
  })
  traceMetrics(deps.metrics)
  if (receiptStorage.collector) spanCounters(deps.metrics)

  let waiting: ({ observed: Observation } | { make: () => Unhashed })[] = []
  const waits = new Map<string, Wait>()
  const questions = new Map<number, (found: UnsealedTrace | undefined) => void>()
  const reading = new Set<Promise<void>>()
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let settings: RecordSettings | undefined
  let fallback: Promise<InThreadReceipts> | undefined
  let nowHere: InThreadReceipts | undefined
  let closed = false
  let dropped = 0
  const say = rateLimitedLog(clock)
  let latest: Pick<ThreadReport, 'spillBytes' | 'status'> = {
    spillBytes: 0,
    status: { writer: 'starting', spill: 'ok', broken: [] },
  }
  const writes = writeProxy(order => worker.postMessage(order), hold)
  const post = (message: ToThread, transfer: ArrayBuffer[] = []) => worker.postMessage(message, transfer)

  function take(one: (typeof waiting)[number]) {
    if (!durable && out.count + waiting.length >= store.queue) return drop(1, 'the queue is full')
    waiting.push(one)
    if (waiting.length >= GATHER_CALLS) flush()
    // In durable mode a call waits for the record: one turn of the loop gathers what ended in it.
    else timer ??= setTimeout(flush, durable ? 0 : Math.min(GATHER_MS, store.flushMs))
  }

  /** The same; resolves when the record is in the store or on the disk. */
  function stored(id: string, one: (typeof waiting)[number]): Promise<void> {
    const outcome = new Promise<void>((resolve, reject) => {
      waits.set(id, { item: undefined, resolve, reject })
    })
    take(one)
    return outcome
  }

  function drop(number: number, why: string) {
    counters.dropped.add(number)
    dropped += number
    say('dropped', () => {
      log.error(`trace records were dropped: ${why}`, { dropped })
      dropped = 0
    })
  }

  /** Hands over what has gathered. */
  function flush() {
    clearTimeout(timer)
    timer = undefined
    const ready = waiting
    waiting = []
    const calls: Packable[] = []
    const records: Recorded[] = []
    // What may not travel is read in this thread, where it is.
    const travels = out.room()
    for (const one of ready) {
      try {
        if ('make' in one) {
          const record = one.make()
          records.push(travels(bytesToHash(record)) ? record : finished(record, hashing))
        } else {
          const call = one.observed.call()
          if (isRaw(call) && travels(bytesOf(call))) calls.push(call)
          else readHere(call)
        }
      } catch (error) {
        log.error('a call could not be recorded', { error })
        if ('observed' in one) settle(one.observed.traceId, asError(error))
      }
    }
    if (calls.length + records.length > 0) handOver(calls, records)
  }

  function readHere(call: EndedCall) {
    const read = readForTravel(call, hashing)
      .then(light => handOver([light], []))
      .catch((error: unknown) => {
        log.error('a call could not be recorded', { error, trace_id: call.traceId })
        settle(call.traceId, asError(error))
      })
      .finally(() => reading.delete(read))
    reading.add(read)
  }

  function handOver(calls: readonly Packable[], records: readonly Recorded[]) {
    for (const call of calls) keepItem(call.traceId, { call })
    for (const record of records) keepItem(idOf(record), { record })
    if (fallback) {
      for (const call of calls) void putHere({ call })
      for (const record of records) void putHere({ record })
      return
    }
    const packed = calls.length === 0 ? undefined : packCalls(calls)
    const made = records.length === 0 ? undefined : packRecords(records)
    const runs = [packed, made].flatMap(one => one?.bytes ?? [])
    out.post(
      calls.length + records.length,
      runs.reduce((sum, { length }) => sum + length, 0),
    )
    post(
      { settings: changedSettings(), calls: packed, records: made },
      runs.map(({ buffer }) => buffer),
    )
  }

  /** In durable mode everything handed over is held until it is kept, so that the end of the thread loses nothing. */
  function keepItem(id: string, item: Item) {
    if (!durable) return
    const wait = waits.get(id)
    if (wait) wait.item = item
    else waits.set(id, { item, resolve: () => undefined, reject: () => undefined })
    hold()
  }

  function changedSettings(): RecordSettings | undefined {
    const now = deps.settings()
    const same =
      settings?.pricing === now.pricing &&
      settings.hashes.config_hash === now.hashes.config_hash &&
      settings.hashes.price_table_hash === now.hashes.price_table_hash
    settings = now
    return same ? undefined : now
  }

  /** The thread keeps the process alive only while a caller waits for it. */
  function hold() {
    if (waits.size + questions.size + writes.size > 0) worker.ref()
    else worker.unref()
  }

  function settle(id: string, error?: Error) {
    const wait = waits.get(id)
    waits.delete(id)
    hold()
    if (error) wait?.reject(error)
    else wait?.resolve()
  }

  function onReport({ kept, lost, deltas, ...rest }: ThreadReport) {
    latest = rest
    out.reported(rest)
    deps.apply(deltas)
    for (const id of kept) settle(id)
    for (const { id, why } of lost) settle(id, new Error(why))
  }

  function ask(question: Question): Promise<UnsealedTrace | undefined> {
    return new Promise(resolve => {
      questions.set(++asked, found => {
        // At once: where this thread was busy, the answer and the end of the other one arrive together.
        if (question === 'close') closed = true
        resolve(found)
      })
      hold()
      post({ ask: asked, question })
    })
  }

  async function putHere(item: Item) {
    const id = 'call' in item ? item.call.traceId : idOf(item.record)
    try {
      const kept = await fallback!
      if ('call' in item) await kept.call(item.call)
      else kept.take(finished(item.record, hashing))
      if (durable) await kept.writer.recorded(id)
      settle(id)
    } catch (error) {
      log.error('a call could not be recorded', { error, trace_id: id })
      settle(id, asError(error))
    }
  }

  /** The thread is gone: from now on receipts are kept in this one. */
  function lose(error: unknown) {
    if (fallback || closed) return
    const held = durable ? [...waits.values()].flatMap(({ item }) => item ?? []) : []
    const lost = durable ? 0 : out.count
    log.error('the thread that keeps receipts ended; they are kept in the main thread from now on', { error, lost })
    if (lost > 0) drop(lost, 'the thread that held them ended')
    out.forget()
    writes.lost()
    fallback = deps.here()
    fallback.then(
      kept => {
        nowHere = kept
      },
      (reason: unknown) => log.error('receipts cannot be kept in the main thread either', { error: reason }),
    )
    for (const item of held) void putHere(item)
    for (const resolve of questions.values()) resolve(undefined)
    questions.clear()
  }

  worker.on('message', (message: FromThread) => {
    if (fallback) return
    if ('report' in message) onReport(message.report)
    else if ('written' in message) writes.heard(message)
    else if ('reply' in message) {
      questions.get(message.reply)?.(message.found)
      questions.delete(message.reply)
      hold()
    } else if ('log' in message) {
      const { level, target, message: text, fields } = message.log
      log.target(target)[level](text, fields)
    } else if ('failed' in message) {
      lose(new Error(message.failed))
      ready.resolve()
    } else {
      latest = { ...latest, status: { ...latest.status, writer: 'ok' } }
      ready.resolve()
    }
  })
  let failure: unknown
  worker.on('error', error => {
    failure = error
  })
  worker.on('exit', code => {
    lose(failure ?? new Error(`the thread exited with code ${code}`))
    ready.resolve()
  })
  settings = deps.settings()
  worker.unref()
  post({ begin: { ...place, store, settings, salt: hashing.salt } })

  async function made(): Promise<void> {
    flush()
    await Promise.all(reading)
    if (!fallback) await ask('made')
    if (fallback) await (await fallback).made()
  }

  /** Everything is with the store, and the thread is about to end. */
  async function settled(): Promise<void> {
    await made()
    if (!fallback) await ask('close')
  }

  return {
    observed(observed) {
      if (durable) return stored(observed.traceId, { observed })
      take({ observed })
      return undefined
    },
    async record(make) {
      if (!durable) return take({ make })
      const record = make()
      await stored(idOf(record), { make: () => record })
    },
    async status() {
      await ready.promise
      return nowHere?.status() ?? latest.status
    },
    async find(id, tenant) {
      flush()
      const found = fallback ? undefined : await ask({ find: id, tenant })
      return fallback ? (await fallback).find(id, tenant) : found
    },
    made,
    // A server has one connection for all, and a queue of its own.
    ...(db.kind === 'file' && { write: given => (fallback || closed ? db.write(given) : writes.write(given)) }),
    async close() {
      const late = new AbortController()
      const limit = pause(writerLimits.close_ms + CLOSE_GRACE_MS, 'late', { signal: late.signal })
      const how = await Promise.race([settled(), limit])
      limit.catch(() => undefined)
      late.abort()
      if (how === 'late') log.error('the thread that keeps receipts did not finish in time', { left: out.count })
      // It ends by itself: ended from outside in the middle of a statement, the driver ends the whole process (tried).
      closed = true
      worker.unref()
      if (fallback) await (await fallback).close()
    },
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
