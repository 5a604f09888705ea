import type { Log } from '../shared/log/log.ts'
import type { Metrics } from '../shared/metrics/metrics.ts'
import type { BuiltinPrices } from '../shared/prices/builtin.ts'
import type { Signer } from '../shared/sign/ed25519.ts'
import type { Sha256 } from '../shared/sign/sha256.ts'
import type { Db } from '../shared/sql/db.ts'
import type { CollectorPlace } from '../shared/telemetry/collector.ts'
import type { Clock } from '../shared/time/clock.ts'
import type { UnsealedTrace } from '../shared/wire/router/trace.ts'
import { pendingRecords } from './audit/pending-records.ts'
import type { StoreSettings } from './config/routing-config.ts'
import { traceMetrics } from './metrics/trace-metrics.ts'
import type { EndedCall } from './observe/ended-call.ts'
import type { Observation } from './observe/observation.ts'
import { type RecordSettings, recordMaker } from './observe/record-maker.ts'
import { recorder } from './observe/recorder.ts'
import type { Hashing } from './receipt/request-part.ts'
import { finished, type Unhashed, type Whole } from './receipt/unhashed.ts'
import { callTracing } from './telemetry/call-tracing.ts'
import { publishKey } from './traces/keys.ts'
import type { LineSink } from './traces/known-copies.ts'
import { retention } from './traces/retention.ts'
import type { Spill } from './traces/spill.ts'
import { newestRecordMs, storedTenants } from './traces/stored-records.ts'
import { type TraceWriter, traceWriter, type WriterStatus } from './traces/writer.ts'
import { headerValue } from './upstream/headers.ts'

/** What a host with files adds to the keeping of receipts. */
export interface ReceiptStorage {
  durable: boolean
  signer?: Signer
  spill?: Spill
  sinks?: readonly LineSink[]
  holder?: string
  isGone?: (holder: string) => boolean
  /** Gets a trace of each call. */
  collector?: (CollectorPlace & { fetch?: typeof fetch | undefined }) | undefined
  /** The writer of another process, in the place of one here. */
  writer?: (deps: Pick<ReceiptsDeps, 'clock' | 'log' | 'metrics' | 'store'>) => TraceWriter
  /** Keeps receipts outside the calling thread, which costs the calls nothing; `here` keeps them in it, if that comes to an end. */
  elsewhere?: (deps: ReceiptsDeps, here: (metrics: Metrics) => Promise<InThreadReceipts>) => Promise<Receipts>
}

export interface ReceiptsDeps {
  db: Db
  receiptStorage: ReceiptStorage
  clock: Clock
  log: Log
  metrics: Metrics
  sha256: Sha256
  hashing: Hashing
  /** Fixed at the start. */
  store: StoreSettings
  settings: () => RecordSettings
  builtinPrices: () => Promise<BuiltinPrices>
}

export interface Receipts {
  /** Makes the receipt of an observed call after its answer. In durable mode the answer ends when the promise resolves. */
  observed: (one: Observation) => Promise<void> | undefined
  /** Makes the receipt after the answer has gone; in durable mode the answer waits until it is kept. */
  record(make: () => Unhashed): Promise<void>
  /** The state of the writer, once it has started. */
  status(): Promise<WriterStatus>
  /** A record that is not in the store yet; without a tenant, of any. */
  find(id: string, tenant?: string): Promise<UnsealedTrace | undefined>
  /** Resolves when a record has been made of all that has ended. */
  made(): Promise<void>
  /** Makes a transaction where receipts are written, so that no caller here waits for the lock or the disk. */
  write?: Db['write']
  /** Resolves when all that has ended is kept. */
  kept?(): Promise<void>
  /** The same, for good. */
  close(): Promise<void>
}

/** Receipts kept in this thread take calls and records as they are, too. */
export interface InThreadReceipts extends Receipts {
  /** Makes the record of a call. */
  call(ended: EndedCall): void | Promise<void>
  /** Takes a finished record. */
  take(record: Whole): void
  writer: TraceWriter
}

/** Everything between the end of a call and its row in the store. */
export async function keepReceipts(deps: ReceiptsDeps): Promise<Receipts> {
  const { receiptStorage, db, clock } = deps
  if (receiptStorage.signer) await publishKey(db, receiptStorage.signer, clock.now())
  const here = async (metrics: Metrics) => receiptsInThread({ ...deps, metrics })
  return receiptStorage.elsewhere ? receiptStorage.elsewhere(deps, here) : receiptsInThread(deps)
}

/** The writer of a store, with what drops old records where that is this one's work. */
interface Writing {
  writer: TraceWriter
  old: ReturnType<typeof retention> | undefined
}

/** The writer of a store, and what drops the old records from it. */
export function ownWriter(
  { receiptStorage, ...deps }: Omit<ReceiptsDeps, 'hashing' | 'settings' | 'builtinPrices'>,
  { queue = deps.store.queue, tells = false } = {},
) {
  const { store, log } = deps
  const { durable, ...host } = receiptStorage
  const writer = traceWriter({
    ...deps,
    ...host,
    tells,
    mode: durable ? 'durable' : 'best-effort',
    limits: {
      queue,
      batch: store.batch,
      flush_ms: store.flushMs,
      checkpoint_records: store.checkpointRecords,
      checkpoint_seconds: store.checkpointSeconds,
    },
  })
  writer.start()
  const old = retention({
    days: store.retentionDays,
    tenants: () => storedTenants(deps.db),
    prune: writer.prune,
    newestMs: () => newestRecordMs(deps.db),
    clock: deps.clock,
    log,
  })
  return { writer, old }
}

/** The same in the calling thread. */
export function receiptsInThread(deps: ReceiptsDeps): InThreadReceipts {
  const { receiptStorage, log } = deps
  const { durable, writer: elsewhere } = receiptStorage
  const { writer, old }: Writing = elsewhere ? { writer: elsewhere(deps), old: undefined } : ownWriter(deps)
  const count = traceMetrics(deps.metrics)
  const held = pendingRecords(writer.depth)
  const { collector } = receiptStorage
  const tracing = collector && callTracing(collector, deps)
  const take = ({ whole, context }: Whole): void => {
    writer.enqueue(whole)
    held.took(whole)
    count(whole)
    tracing?.add(whole, context)
  }
  const tookCall = (whole: UnsealedTrace, { headers }: EndedCall) =>
    take({ whole, context: tracing && { traceparent: headerValue(headers, 'traceparent'), starts: [] } })
  const make = recordMaker(deps)
  const observed = recorder({ make, take: tookCall, log })
  async function made(): Promise<void> {
    // What `record` has put off is one turn of the loop away.
    await new Promise(resolve => setTimeout(resolve, 0))
    await observed.settled()
    await writer.taken?.()
  }
  return {
    observed(one) {
      if (!durable) {
        observed.ended(one)
        return undefined
      }
      return new Promise((resolve, reject) => {
        observed.ended(one, error => {
          if (error === undefined) resolve(writer.recorded(one.traceId))
          else reject(error)
        })
      })
    },
    call(ended) {
      const made = make(ended)
      return made instanceof Promise ? made.then(whole => tookCall(whole, ended)) : tookCall(made, ended)
    },
    take,
    async record(make) {
      if (durable) {
        const record = finished(make(), deps.hashing)
        take(record)
        await writer.recorded(record.whole.trace_id)
        return
      }
      setTimeout(() => {
        try {
          take(finished(make(), deps.hashing))
        } catch (error) {
          log.error('a call could not be recorded', { error })
        }
      }, 0)
    },
    writer,
    status: async () => writer.status(),
    find: async (id, tenant) => held.find(id, tenant),
    made,
    async kept() {
      await made()
      await writer.idle()
    },
    async close() {
      await old?.close()
      await made()
      await writer.close()
      await tracing?.close()
    },
  }
}
