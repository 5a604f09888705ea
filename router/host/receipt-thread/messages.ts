import type { Fields, Level } from '../../../shared/log/log.ts'
import type { WriteRequest, WriteResult } from '../../../shared/sql/forwarding-db.ts'
import type { CollectorPlace } from '../../../shared/telemetry/collector.ts'
import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import type { MetricDelta } from '../../metrics/metrics-relay.ts'
import type { PackedCalls } from '../../observe/packed-calls.ts'
import type { RecordSettings } from '../../observe/record-maker.ts'
import type { PackedRecords } from '../../receipt/packed-records.ts'
import type { WriterStatus } from '../../traces/writer.ts'

/** Where and how receipts are kept, as far as another thread has to be told. */
export interface ReceiptLocation {
  address: string
  token?: string | undefined
  durable: boolean
  signingKey?: string | undefined
  signingKeyFile?: string | undefined
  anchorFile?: string | undefined
  /** The writer's name on its lease. */
  holder: string
  /** Where another process writes: its socket. */
  writer?: string | undefined
  collector?: CollectorPlace | undefined
}

export type Question = 'made' | 'close' | { find: string; tenant: string | undefined }

export type ToThread =
  | { begin: ReceiptLocation & { store: StoreSettings; settings: RecordSettings; salt: Uint8Array } }
  /** In this order: settings from now on, calls, finished records. */
  | { settings: RecordSettings | undefined; calls: PackedCalls | undefined; records: PackedRecords | undefined }
  | { ask: number; question: Question }
  | WriteRequest

export interface ThreadReport {
  /** How many calls and records have been taken so far, and how many of them wait for the store. */
  taken: number
  depth: number
  /** Durable: the ids that are kept since the last report, and those that are not. */
  kept: string[]
  lost: { id: string; why: string }[]
  status: WriterStatus
  spillBytes: number
  deltas: MetricDelta[]
}

export type FromThread =
  | { ready: true }
  | { failed: string }
  | { report: ThreadReport }
  | { reply: number; found?: UnsealedTrace | undefined }
  | WriteResult
  | { log: { level: Level; target: string; message: string; fields: Fields | undefined } }
