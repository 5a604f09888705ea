import { integer, real, text } from 'drizzle-orm/sqlite-core'
import { table } from '../../shared/sql/row-types.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import type { Mode } from '../../shared/wire/router/conventions.ts'
import type { Verdict } from '../../shared/wire/router/feedback.ts'
import type { ServedFrom } from '../../shared/wire/router/trace.ts'

/** The columns of the router's tables, for the types of rows; a test holds them to baseline.ts, which makes the tables. */

export const meta = table('router_meta', {
  key: text().notNull(),
  value: text().notNull(),
})

export const traces = table('traces', {
  tenant_id: text().notNull(),
  seq: integer().notNull(),
  trace_id: text().notNull(),
  ts_ms: integer().notNull(),
  session_id: text().notNull(),
  mode: text().$type<Mode>().notNull(),
  route_ix: integer(),
  served_from: text().$type<ServedFrom>().notNull(),
  served_rung: integer().notNull(),
  served_model: text(),
  total_nano: integer(),
  gate_nano: integer().notNull(),
  baseline_nano: integer(),
  calibrated_nano: integer(),
  escalations: integer().notNull(),
  failovers: integer().notNull(),
  response_id: text(),
  upstream_request_id: text(),
  client_request_id: text(),
  gates: text(),
  body: text().notNull(),
})

export const savingsDays = table('savings_days', {
  tenant_id: text().notNull(),
  day: integer().notNull(),
  route: text().notNull(),
  model: text().notNull(),
  requests: integer().notNull(),
  unpriced: integer().notNull(),
  spent: integer().notNull(),
  gate: integer().notNull(),
  baseline: integer().notNull(),
  calibrated_requests: integer().notNull(),
  calibrated: integer().notNull(),
  calibrated_spent: integer().notNull(),
})

export const evalsDays = table('evals_days', {
  tenant_id: text().notNull(),
  day: integer().notNull(),
  sums: text().notNull(),
})

export const feedback = table('feedback', {
  tenant_id: text().notNull(),
  seq: integer().notNull(),
  feedback_id: text().notNull(),
  trace_id: text().notNull(),
  gate_id: text().notNull(),
  reporter: text().notNull(),
  verdict: text().$type<Verdict>().notNull(),
  ts_ms: integer().notNull(),
  hash: text().notNull(),
  body: text().notNull(),
})

export const checkpoints = table('checkpoints', {
  ix: integer().notNull(),
  tenant_id: text().notNull(),
  kind: text().$type<Checkpoint['kind']>().notNull(),
  seq: integer().notNull(),
  digest: text().notNull(),
  copied: integer().notNull(),
  body: text().notNull(),
})

export const signingKeys = table('signing_keys', {
  key_id: text().notNull(),
  public_key: text().notNull(),
  created_at: text().notNull(),
  retired_at: text(),
})

export const writerLease = table('writer_lease', {
  name: text().notNull(),
  holder: text().notNull(),
  epoch: integer().notNull(),
  expires_ms: integer().notNull(),
  wanted_by: text(),
})

export const budgets = table('router_budgets', {
  key: text().notNull(),
  spent: integer().notNull(),
  updated_at: text().notNull(),
})

export const outcomes = table('outcomes', {
  tenant_id: text().notNull(),
  trace_id: text().notNull(),
  route_fp: text().notNull(),
  ix: integer(),
  rung: integer().notNull(),
  score: text(),
  fails: integer().notNull(),
  passes: integer().notNull(),
  answered_ms: integer(),
  session: text(),
})

export const calibration = table('calibration', {
  tenant_id: text().notNull(),
  route_fp: text().notNull(),
  version: integer().notNull(),
  previous: integer().notNull(),
  state: text().notNull(),
  t: real().notNull(),
  n: integer().notNull(),
  k: integer().notNull(),
  certified_lambda: real(),
  p_value: real(),
  updated_at: text().notNull(),
})

export const routingConfigs = table('routing_configs', {
  config_hash: text().notNull(),
  used_ms: integer().notNull(),
  body: text().notNull(),
})

export const shadows = table('shadows', {
  tenant_id: text().notNull(),
  trace_id: text().notNull(),
  route_fp: text().notNull(),
  ts_ms: integer().notNull(),
  served_in: integer().notNull(),
  served_out: integer().notNull(),
  top_in: integer().notNull(),
  top_out: integer().notNull(),
  same_nano: integer().notNull(),
  top_nano: integer().notNull(),
  spent_nano: integer().notNull(),
})
