import { z } from 'zod'
import { named } from '../schema-names.ts'

/** docs/spec/runtime.md §1, the closed table: code → status. */
export const statusOf = {
  validation_failed: 400,
  bad_json: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  forbidden_scope: 403,
  forbidden_tenant: 403,
  csrf: 403,
  not_found: 404,
  session_busy: 409,
  session_stopped: 409,
  run_terminal: 409,
  run_not_terminal: 409,
  approval_decided: 409,
  idempotency_mismatch: 409,
  idempotency_in_progress: 409,
  node_busy: 409,
  in_use: 409,
  setup_done: 409,
  several_tenants: 409,
  connector_not_ready: 409,
  node_removed: 410,
  payload_too_large: 413,
  throttled: 429,
  internal: 500,
  upstream_failed: 502,
  node_offline: 503,
  isolation_unavailable: 503,
  draining: 503,
  store_unavailable: 503,
} as const

export type ErrorCode = keyof typeof statusOf

export const errorCodes = Object.keys(statusOf) as [ErrorCode, ...ErrorCode[]]

export const errorDetail = z.object({ path: z.string(), message: z.string() })

/** Flat, and open to more members: a budget refusal adds `dimension`, a vendor failure `connector` and `action`. */
export const errorBody = named(
  'Error',
  z.looseObject({
    error: z.string(),
    code: z.enum(errorCodes),
    details: z.array(errorDetail).optional(),
  }),
)
export type ErrorBody = z.infer<typeof errorBody>

export const budgetDimension = z.enum(['costPerDay', 'costPerRun', 'tokensPerDay', 'runsPerDay'])
export type BudgetDimension = z.infer<typeof budgetDimension>

export const budgetRefusal = named(
  'BudgetRefusal',
  z.object({
    error: z.string(),
    code: z.literal('budget_exceeded'),
    dimension: budgetDimension,
    limit: z.number(),
    used: z.number(),
  }),
)
export type BudgetRefusal = z.infer<typeof budgetRefusal>

export const connectorFailure = named(
  'ConnectorFailure',
  z.object({
    error: z.string(),
    code: z.literal('upstream_failed'),
    connector: z.string(),
    action: z.string(),
    upstreamStatus: z.int().optional(),
    upstreamMessage: z.string().max(500).optional(),
  }),
)
export type ConnectorFailure = z.infer<typeof connectorFailure>
