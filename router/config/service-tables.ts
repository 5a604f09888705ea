import { z } from 'zod'
import { flag, whole } from './table-fields.ts'

const HOUR_MS = 3_600_000

/** The time limits of a call, which a provider may set for itself. */
export const timeoutKeys = {
  connect_ms: whole(1, HOUR_MS).optional(),
  first_byte_ms: whole(1, HOUR_MS).optional(),
  idle_ms: whole(1, HOUR_MS).optional(),
  content_ms: whole(1, HOUR_MS).optional(),
  total_ms: whole(1, HOUR_MS).optional(),
}

/** docs/spec/router.md §6.5. */
export const streamTable = z.strictObject({
  keepalive_after_ms: whole(1000, 60_000).default(10_000),
  keepalive_every_ms: whole(1000, 60_000).default(10_000),
})
export type StreamTable = z.output<typeof streamTable>

export const limitsTable = z.strictObject({
  max_body_bytes: whole(1024, 1_073_741_824).default(33_554_432),
  max_response_bytes: whole(1024, 1_073_741_824).default(67_108_864),
  max_concurrency: whole(1, 100_000).default(512),
  max_held_bytes: whole(1024, 1_099_511_627_776).optional(),
  connect_ms: whole(1, HOUR_MS).default(10_000),
  first_byte_ms: whole(1, HOUR_MS).default(120_000),
  idle_ms: whole(1, HOUR_MS).default(120_000),
  content_ms: whole(1, HOUR_MS).default(600_000),
  total_ms: whole(1, HOUR_MS).default(600_000),
  observe_total_ms: whole(0, 24 * HOUR_MS).default(0),
  max_retry_wait_s: whole(0, 600).default(5),
})
export type LimitsTable = z.output<typeof limitsTable>

export const storeTable = z.strictObject({
  queue: whole(1, 10_000_000).default(8192),
  batch: whole(1, 100_000).default(256),
  flush_ms: whole(0, 60_000).default(50),
  checkpoint_records: whole(1, 10_000_000).default(256),
  checkpoint_seconds: whole(1, 86_400).default(60),
  retention_days: whole(0, 36_500).default(0),
  store_reasons: flag.default(true),
})
export type StoreTable = z.output<typeof storeTable>
