import { z } from 'zod'
import { query } from '../aliases.ts'
import { count } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { window } from './conventions.ts'

export const savingsGroup = z.enum(['route', 'model', 'day'])
export type SavingsGroup = z.infer<typeof savingsGroup>

export const savingsQuery = query({ ...window, group: savingsGroup.optional() })

const sums = {
  requests: count,
  spent_usd: z.number(),
  gate_usd: z.number(),
  baseline_same_token_usd: z.number(),
  savings_usd: z.number(),
  /** Of the baseline; null where there is none. */
  savings_pct: z.number().nullable(),
  baseline_calibrated_usd: z.number().optional(),
  savings_calibrated_usd: z.number().optional(),
  /** Requests whose price was unknown; they are in none of the sums. */
  unpriced: count,
}

export const savings = named(
  'Savings',
  z.object({
    ...sums,
    /** Samples that ran on the top rung as well: what they cost beside the same tokens at its prices. */
    shadow: z
      .object({ requests: count, spent_usd: z.number(), same_token_usd: z.number(), measured_usd: z.number() })
      .optional(),
    /** Bootstrap interval of measured over same-token cost, from 30 samples on. */
    /** A list of two rather than a tuple: generators of clients do not read `prefixItems`. */
    ratio_ci: z.array(z.number()).length(2).optional(),
    groups: z.array(z.object({ key: z.string(), ...sums })),
  }),
)
export type Savings = z.infer<typeof savings>
