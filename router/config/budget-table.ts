import { z } from 'zod'
import { expected } from '../../shared/wire/bounds.ts'
import { choice, decimal, usdCap, whole } from './table-fields.ts'

/** docs/spec/router.md §6.4: the same keys at the top, in a route and for a tenant. */
export const budgetTable = z.strictObject(
  {
    per_request_usd: usdCap.optional(),
    per_session_usd: usdCap.optional(),
    per_day_usd: usdCap.optional(),
    per_tenant_day_usd: usdCap.optional(),
    tokens_per_byte: decimal(0.1, 1).optional(),
    media_token_bound: whole(0, 10_000_000).optional(),
    on_exhausted: choice(['serve_best', 'error']).optional(),
  },
  { error: expected('a table') },
)
export type BudgetTable = z.output<typeof budgetTable>

/** `[tenant.<id>]`. */
export const tenantTable = z.strictObject({ budget: budgetTable.optional() })
