import type { CalibrationTable, LearningTable } from './learning-tables.ts'
import type { Problems } from './problem.ts'
import { nameOf, type Read } from './read-table.ts'
import type { Calibration, Learning, Limits, RoutingConfig, StoreSettings } from './routing-config.ts'
import type { LimitsTable, StoreTable, StreamTable } from './service-tables.ts'

export const resolveLimits = (table: LimitsTable): Limits => ({
  maxBodyBytes: table.max_body_bytes,
  maxResponseBytes: table.max_response_bytes,
  maxConcurrency: table.max_concurrency,
  maxHeldBytes: table.max_held_bytes,
  connectMs: table.connect_ms,
  firstByteMs: table.first_byte_ms,
  idleMs: table.idle_ms,
  contentMs: table.content_ms,
  totalMs: table.total_ms,
  observeTotalMs: table.observe_total_ms,
  maxRetryWaitS: table.max_retry_wait_s,
})

export const resolveStore = (table: StoreTable): StoreSettings => ({
  queue: table.queue,
  batch: table.batch,
  flushMs: table.flush_ms,
  checkpointRecords: table.checkpoint_records,
  checkpointSeconds: table.checkpoint_seconds,
  retentionDays: table.retention_days,
  storeReasons: table.store_reasons,
})

export const resolveStream = (table: StreamTable): RoutingConfig['stream'] => ({
  keepaliveAfterMs: table.keepalive_after_ms,
  keepaliveEveryMs: table.keepalive_every_ms,
})

export const resolveCalibration = (table: CalibrationTable): Calibration => ({
  alpha: table.alpha,
  delta: table.delta,
  gamma: table.gamma,
  minN: table.min_n,
  window: table.window,
  feedbackDelayMs: table.feedback_delay_s * 1000,
  method: table.method,
  initial: table.initial,
  bet: table.bet,
})

export const resolveLearning = (table: LearningTable): Learning => ({
  algorithm: table.algorithm,
  epsilon: table.epsilon,
  discount: table.discount,
  minObservations: table.min_observations,
  maxStep: table.max_step,
  ucbC: table.ucb_c,
})

/** docs/spec/router.md §7.2: a larger bet could take the e-process below zero. */
export function checkCalibration(problems: Problems, { value, bad }: Read<CalibrationTable>): void {
  const most = 0.5 / (1 - value.alpha)
  if (value.bet <= most || bad.has('alpha')) return
  const at = ['calibration', 'bet']
  problems.atValue(
    at,
    `${nameOf(at)}: expected at most 0.5 / (1 - alpha), which is ${most.toFixed(4)}, got ${value.bet}`,
  )
}
