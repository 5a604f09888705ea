import type { Log } from '../shared/log/log.ts'
import type { Metrics } from '../shared/metrics/metrics.ts'
import type { BuiltinPrices } from '../shared/prices/builtin.ts'
import type { Price } from '../shared/prices/price.ts'
import type { Signer } from '../shared/sign/ed25519.ts'
import type { Sha256 } from '../shared/sign/sha256.ts'
import type { Db } from '../shared/sql/db.ts'
import type { Clock } from '../shared/time/clock.ts'
import type { UnsealedTrace } from '../shared/wire/router/trace.ts'
import type { ActiveConfig } from './active-config.ts'
import { type Unsealed, unsealed } from './audit/unsealed.ts'
import { findPrice } from './config/prices.ts'
import type { Pricing } from './config/routing-config.ts'
import { traceMetrics } from './metrics/trace-metrics.ts'
import type { Observation } from './observe/observation.ts'
import { type Recorder, recorder } from './observe/recorder.ts'
import type { Hashing } from './receipt/request-part.ts'
import type { LineSink } from './traces/checkpointer.ts'
import { publishKey } from './traces/keys.ts'
import type { Spill } from './traces/spill.ts'
import { type TraceWriter, traceWriter } from './traces/writer.ts'

/** What a host with files adds to the keeping of receipts. */
export interface Keeping {
  durable: boolean
  signer?: Signer
  spill?: Spill
  sinks?: readonly LineSink[]
  holder?: string
  isGone?: (holder: string) => boolean
}

/** Names come from upstreams, so there is no telling how many. */
const MAX_PRICES = 1000

export interface ReceiptsDeps {
  db: Db
  keeping: Keeping
  clock: Clock
  log: Log
  metrics: Metrics
  sha256: Sha256
  hashing: Hashing
  active: () => ActiveConfig
  builtinPrices: () => Promise<BuiltinPrices>
}

export interface Receipts {
  observed: (one: Observation) => void
  /** Makes the receipt after the answer has gone; in durable mode the answer waits until it is kept. */
  record(make: () => UnsealedTrace): Promise<void>
  writer: TraceWriter
  /** What the writer still holds. */
  unsealed: Unsealed
  /** Resolves when a record has been made of all that has ended. */
  made(): Promise<void>
  /** Resolves when all that has ended is kept. */
  close(): Promise<void>
}

/** Everything between the end of a call and its row in the store. */
export async function keepReceipts(deps: ReceiptsDeps): Promise<Receipts> {
  const { db, keeping, clock, log } = deps
  if (keeping.signer) await publishKey(db, keeping.signer, clock.now())
  const { durable, ...host } = keeping
  const { queue, batch, flushMs, checkpointRecords, checkpointSeconds } = deps.active().config.store
  const writer = traceWriter({
    ...deps,
    ...host,
    mode: durable ? 'durable' : 'best-effort',
    limits: {
      ...{ queue, batch },
      flush_ms: flushMs,
      checkpoint_records: checkpointRecords,
      checkpoint_seconds: checkpointSeconds,
    },
  })
  writer.start()
  const count = traceMetrics(deps.metrics)
  const held = unsealed(writer.depth)
  const take = (record: UnsealedTrace): void => {
    writer.enqueue(record)
    held.took(record)
    count(record)
  }
  // A look-up walks the whole table, and calls name the same few models.
  const prices = new Map<string, Price | undefined>()
  let pricesOf: Pricing | undefined
  const observed: Recorder = recorder({
    hashing: deps.hashing,
    hashes: () => {
      const { configHash, priceTableHash } = deps.active().config
      return { config_hash: configHash, price_table_hash: priceTableHash }
    },
    async findPrice() {
      const builtin = await deps.builtinPrices()
      const { pricing } = deps.active().config
      if (pricing !== pricesOf) prices.clear()
      pricesOf = pricing
      return (provider, dialect, model) => {
        const key = `${provider}/${model}`
        if (!prices.has(key)) {
          if (prices.size >= MAX_PRICES) prices.clear()
          prices.set(key, findPrice(pricing, builtin, { provider, dialect, names: [model] }))
        }
        return prices.get(key)
      }
    },
    enqueue: take,
    log,
  })
  async function made(): Promise<void> {
    // What `record` has put off is one turn of the loop away.
    await new Promise(resolve => setTimeout(resolve, 0))
    await observed.settled()
  }
  return {
    observed: one => observed.ended(one),
    async record(make) {
      if (durable) {
        const trace = make()
        take(trace)
        await writer.recorded(trace.trace_id)
        return
      }
      setTimeout(() => {
        try {
          take(make())
        } catch (error) {
          log.error('a call could not be recorded', { error })
        }
      }, 0)
    },
    writer,
    unsealed: held,
    made,
    async close() {
      await made()
      await writer.close()
    },
  }
}
