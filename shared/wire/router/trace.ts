import { z } from 'zod'
import { count, int } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, mode, profiles, sealed, tenantId, timestamp, traceId } from './conventions.ts'

export const gateOutcomes = ['pass', 'fail', 'abstain', 'skipped', 'error'] as const
export const attemptVerdicts = ['pass', 'fail', 'error', 'cancelled'] as const
export const causes = ['start', 'escalation', 'failover', 'retry', 'overflow', 'speculation'] as const
export type Cause = (typeof causes)[number]

export const errorClasses = [
  'transport',
  'timeout',
  'rate_limited',
  'overloaded',
  'upstream_5xx',
  'upstream_4xx',
  'context_overflow',
  'auth',
  'bad_response',
  'no_credential',
  'breaker_open',
  'thinking_mismatch',
  'untranslatable',
  'client_abort',
  'speculation_cancelled',
] as const
export type ErrorClass = (typeof errorClasses)[number]

export const overrides = [
  'header',
  'profile',
  'tools',
  'images',
  'thinking_floor',
  'conversation',
  'sticky',
  'cache',
  'breaker',
  'budget',
] as const
export type Override = (typeof overrides)[number]

export const servedFrom = z.enum([
  'attempt',
  'best_attempt',
  'upstream_error',
  'error',
  'aborted',
  'passthrough',
  // An answer that was kept after it passed its gates; nothing was called for it.
  'cache',
])
export type ServedFrom = z.infer<typeof servedFrom>

const traceApi = z.enum(['messages', 'chat', 'messages.count_tokens', 'responses', 'passthrough'])

/** US dollars on a record; `null` where the price is unknown, never 0 in its place. */
const usd = z.number()

export const features = z.strictObject({
  requested_model: sealed,
  agent: sealed,
  subagent: sealed.optional(),
  task: sealed.optional(),
  language: sealed.optional(),
  tool_count: count,
  image_count: count,
  has_thinking_history: z.boolean(),
  stream: z.boolean(),
  /** Of the Responses API: the client asks for the answer later, so the call is observed whatever the route says. */
  background: z.literal(true).optional(),
  body_bytes: count,
  /** floor(log2(max(1, body_bytes))) */
  size_bucket: count,
  message_count: count,
  max_tokens: count.optional(),
  n: count,
})
export type Features = z.infer<typeof features>

export const tokens = z.strictObject({
  uncached: count,
  cache_write_5m: count,
  cache_write_1h: count,
  cache_read: count,
  /** Reasoning included. */
  output: count,
})
export type Tokens = z.infer<typeof tokens>

export const gateResult = z.strictObject({
  gate_id: sealed,
  kind: sealed,
  verdict: z.enum(['pass', 'fail', 'abstain']),
  score: z.number().min(0).max(1).optional(),
  cost: usd.min(0),
  latency_ms: z.number().min(0),
  reason: z.string().max(200).optional(),
  /** Never output text. */
  evidence_ref: z.string().max(200).optional(),
})
export type GateResult = z.infer<typeof gateResult>

/** Why a member of a request is changed for the model that it goes to. */
export const adaptReasons = [
  'unsupported',
  'too_large',
  'renamed',
  'thinking_off',
  'refused',
  'no_counterpart',
] as const
export type AdaptReason = (typeof adaptReasons)[number]

/** A setting of the request that was changed for the model of an attempt; of what the client wrote it holds numbers and names of settings. */
export const adaptedMember = z.strictObject({
  path: sealed,
  from: sealed.optional(),
  /** null where it was left out. */
  to: sealed.nullable(),
  why: z.enum(adaptReasons),
})
export type AdaptedMember = z.infer<typeof adaptedMember>

export const attempt = named(
  'Attempt',
  z
    .strictObject({
      rung: count,
      provider: sealed,
      model: sealed,
      /** What the gates alone said. */
      gate: z.enum(gateOutcomes),
      /** What the router decided. */
      verdict: z.enum(attemptVerdicts),
      cost: usd.min(0).nullable(),
      gates: z.array(gateResult),
      score: z.number().min(0).max(1).nullable(),
      tokens,
      usage_source: z.enum(['provider', 'estimated', 'none']),
      latency_ms: z.number().min(0),
      ttfb_ms: z.number().min(0).nullable(),
      status: z.int().nullable(),
      finish: sealed.nullable(),
      cause: z.enum(causes),
      error_class: z.enum(errorClasses).optional(),
      /** Absent where nothing but the model was changed, and in records of older versions. */
      adapted: z.array(adaptedMember).optional(),
    })
    .refine(
      ({ verdict, error_class }) => (verdict === 'error' || verdict === 'cancelled') === (error_class !== undefined),
      { path: ['error_class'], error: 'present if and only if the verdict is error or cancelled' },
    ),
)
export type Attempt = z.infer<typeof attempt>

export const dropReasons = [
  'tools',
  'images',
  'max_input_tokens',
  'untranslatable',
  'conversation',
  'no_credential',
] as const

/** A rung that could not take the request, so that it was never asked. */
export const droppedRung = z.strictObject({
  rung: count,
  model: sealed,
  reason: z.enum(dropReasons),
  /** In words; for what its dialect cannot express, the members of the request that stand in the way. */
  because: sealed,
})
export type DroppedRung = z.infer<typeof droppedRung>

/** Whether a conversation stayed on a dearer rung for what its provider has cached of it. */
export const stay = z.strictObject({
  from: count,
  to: count,
  stays: z.boolean(),
  cached_tokens: count,
  cached_for_ms: z.number().min(0),
  stay_usd: usd,
  go_usd: usd,
  without_usd: usd,
  balance_usd: usd,
})

export const policy = z.strictObject({
  id: sealed,
  start_rung: count,
  propensity: z.number().min(0).max(1),
  mode_profile: z.enum([...profiles, 'none']),
  explore: z.boolean(),
  config_hash: hex64,
  price_table_hash: hex64,
  overrides: z.array(z.enum(overrides)),
  /** Absent where every rung could take the request, and in records of older versions. */
  dropped: z.array(droppedRung).optional(),
  /** Absent where nothing of the conversation is in a cache, or no cheaper rung would start. */
  stay: stay.optional(),
})
export type Policy = z.infer<typeof policy>

export const final = z.strictObject({
  /** -1 when nothing was served. */
  served_rung: int(-1),
  served_model: sealed.nullable(),
  served_from: servedFrom,
  /** 499 for a client that went away. */
  status: z.int(),
  total_cost_usd: usd.nullable(),
  gate_cost_usd: usd,
  baseline_same_token_usd: usd.nullable(),
  baseline_calibrated_usd: usd.optional(),
  savings_usd: usd.nullable(),
  savings_calibrated_usd: usd.optional(),
  escalations: count,
  failovers: count,
  wall_ms: z.number().min(0),
  overhead_ms: z.number(),
  response_id: sealed.optional(),
  upstream_request_id: sealed.optional(),
  client_request_id: sealed.optional(),
  truncated: z.boolean().optional(),
})
export type Final = z.infer<typeof final>

const body = {
  v: z.literal(1),
  trace_id: traceId,
  tenant_id: tenantId,
  ts: timestamp,
  session_id: sealed,
  /** What was really done. */
  mode,
  route_ix: count.nullable(),
  request: z.strictObject({
    api: traceApi,
    /** Of a call that is only passed on: what was called, without its query. */
    method: sealed.optional(),
    path: sealed.optional(),
    prompt_hash: hex64,
    body_sha256_in: hex64,
    body_sha256_out: hex64.nullable(),
    features,
  }),
  policy,
  attempts: z.array(attempt),
  final,
}

/** A decision before the writer gave it its place in the chain. */
export const unsealedTrace = named('UnsealedTrace', z.strictObject(body))
export type UnsealedTrace = z.infer<typeof unsealedTrace>

/** docs/spec/router.md §1.1. Strict: a record with another member is not version 1. */
export const traceRecord = named('TraceRecord', z.strictObject({ ...body, seq: count, prev_hash: hex64, hash: hex64 }))
export type TraceRecord = z.infer<typeof traceRecord>

/** A line of a list: enough to choose by. */
export const traceSummary = named(
  'TraceSummary',
  z.object({
    trace_id: traceId,
    ts: timestamp,
    mode,
    route_ix: count.nullable(),
    agent: z.string(),
    requested_model: z.string(),
    served_model: z.string().nullable(),
    served_rung: z.int(),
    served_from: servedFrom,
    status: z.int(),
    attempts: count,
    total_cost_usd: usd.nullable(),
    savings_usd: usd.nullable(),
  }),
)
export type TraceSummary = z.infer<typeof traceSummary>
