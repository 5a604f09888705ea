import { z } from 'zod'
import { count, int } from '../bounds.ts'
import { acceptsRecord } from '../read-only.ts'
import { named } from '../schema-names.ts'
import { connectorRef } from './catalog.ts'
import { agentName, timestamp, usd, usdLimit } from './conventions.ts'

const toolLimitKey = z
  .string()
  .refine(key => connectorRef(key)?.action !== undefined, { error: 'expected <connector>.<action>' })

/** PUT replaces every field: one that is left out goes back to its default, which is "no limit". */
const putFields = named(
  'BudgetPut',
  z.strictObject({
    maxCostUsdPerDay: usdLimit.nullable().default(null),
    maxCostUsdPerRun: usdLimit.nullable().default(null),
    maxTokensPerDay: int(0).nullable().default(null),
    maxRunsPerDay: int(0).nullable().default(null),
    hardFail: z.boolean().default(true),
    notifyAtPct: int(1, 100).default(80),
    toolLimits: z.record(toolLimitKey, int(0)).default({}),
  }),
)

export const budget = named(
  'Budget',
  z.object({
    agentName,
    maxCostUsdPerDay: usd.nullable(),
    maxCostUsdPerRun: usd.nullable(),
    maxTokensPerDay: count.nullable(),
    maxRunsPerDay: count.nullable(),
    hardFail: z.boolean(),
    notifyAtPct: z.int(),
    toolLimits: z.record(z.string(), count),
    today: z.object({
      runs: count,
      tokens: count,
      costUsd: usd,
      /** Of `tokens` and `costUsd`: the most that calls may have cost which a crash cut off; the limits count it. */
      uncertainTokens: count,
      uncertainCostUsd: usd,
      reserved: z.object({ tokens: count, costUsd: usd }),
    }),
    updatedAt: timestamp,
  }),
)
export type Budget = z.infer<typeof budget>

export const budgetPut = acceptsRecord(putFields, putFields.shape, budget, ['today'])
export type BudgetPut = z.input<typeof budgetPut>

export const budgetSaved = named('BudgetSaved', budget.extend({ status: z.literal('saved') }))
export type BudgetSaved = z.infer<typeof budgetSaved>
