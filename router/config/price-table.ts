import { z } from 'zod'
import { expected } from '../../shared/wire/bounds.ts'
import { choice, flag, modelRef, perMtok, usdFee, whole } from './table-fields.ts'

const listed = {
  input_per_mtok: perMtok,
  output_per_mtok: perMtok,
  cache_write_5m_per_mtok: perMtok.optional(),
  cache_write_1h_per_mtok: perMtok.optional(),
  cache_read_per_mtok: perMtok.optional(),
}

const tier = z.strictObject({ above_input_tokens: whole(1, 1_000_000_000), ...listed }, { error: expected('a table') })

/** docs/spec/router.md §6.3. */
export const priceTable = z.strictObject({
  model: modelRef,
  ...listed,
  per_call_usd: usdFee.optional(),
  per_web_search_usd: usdFee.optional(),
  tiers: z.array(tier, { error: expected('an array of tables') }).optional(),
})
export type PriceTable = z.output<typeof priceTable>
export type ListedPrice = Omit<z.output<typeof tier>, 'above_input_tokens'>

export const pricingTable = z.strictObject({
  builtin: flag.default(true),
  unpriced: choice(['refuse', 'null']).default('refuse'),
})
export type PricingTable = z.output<typeof pricingTable>
