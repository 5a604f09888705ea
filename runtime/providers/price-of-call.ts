import type { Billing, DialectName, Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { BuiltinPrices, BuiltinTable } from '../../shared/prices/builtin.ts'
import { answerCost, attemptCost, classPrices, costParts, type Price, ratesOf } from '../../shared/prices/price.ts'
import { modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'
import type { CallCost } from '../execution/call-cost.ts'
import type { CostOfTokens } from '../execution/models/model.ts'
import { vendorOf } from './vendors.ts'

export interface Priced {
  provider: ProviderId
  /** The model as it was asked for, and as it answered: a dated name of the same model, mostly. */
  asked: string
  answered: string
  dialect: DialectName
  tokens: Tokens
  billing: Billing
}

/** Nano-USD of a call and what of it went on what; undefined where the model has no price and its provider does not say what it bills. */
export type CostOf = (call: Priced) => Promise<{ costNano: NanoUsd; parts?: CallCost['parts'] } | undefined>

export type PriceOf = (call: Omit<Priced, 'tokens' | 'billing'>) => Promise<Price | undefined>

/** A tenant's own prices, then the list prices of the vendors, then none. */
export function pricing(
  { prices: owns }: Pick<ModelSettings, 'prices'>,
  listPrices: () => Promise<BuiltinPrices>,
  now: () => Date,
): { priceOf: PriceOf; costOf: CostOf } {
  const priceOf: PriceOf = async ({ provider, asked, answered, dialect }) => {
    const own = owns[`${provider}/${asked}`] ?? owns[`${provider}/${answered}`]
    if (own) {
      const base = classPrices({ input: own.inPerMTok, output: own.outPerMTok }, dialect)
      return { base, tiers: [], rates: { ...ratesOf(answered), ...ratesOf(asked) } }
    }
    return listed(listPrices, provider, [answered, asked], dialect, now())
  }
  return {
    priceOf,
    async costOf({ tokens, billing, ...call }) {
      const price = await priceOf(call)
      if (!price) return billing.stated > 0 ? { costNano: billing.stated } : undefined
      const prices = new Map<string, Price>()
      for (const name of new Set([billing.fallback, ...billing.others.map(({ model }) => model)])) {
        if (name !== null) prices.set(name, (await priceOf({ ...call, asked: name, answered: name })) ?? price)
      }
      const costNano =
        answerCost(price, tokens, billing, name => prices.get(name)) ?? attemptCost(price, tokens, billing)
      const { input, cacheRead, cacheWrite, output } = costParts(price, tokens, costNano, billing.rates)
      return {
        costNano,
        parts: {
          inputNano: input,
          cacheReadNano: cacheRead,
          cacheWriteNano: cacheWrite,
          outputNano: output,
          cacheReadTokens: tokens.cache_read,
          cacheWriteTokens: tokens.cache_write_5m + tokens.cache_write_1h,
        },
      }
    },
  }
}

/** How much fits into one call of a model: as the tenant says, else as the table of vendors knows it. */
export async function windowOf(
  settings: Pick<ModelSettings, 'windows'>,
  listPrices: () => Promise<Pick<BuiltinTable, 'window'>>,
  { provider, model }: { provider: ProviderId; model: string },
): Promise<number | undefined> {
  const own = settings.windows[`${provider}/${model}`]
  if (own !== undefined) return own
  const vendor = provider === 'router' ? ofVendor(model) : { pricedAs: vendorOf(provider).pricedAs, model }
  return vendor?.pricedAs === undefined ? undefined : (await listPrices()).window(vendor.pricedAs, vendor.model)
}

/** Of calls whose tokens are not known yet: as if nothing were cached, and at most, where all of it is written to a cache and that is dearer. */
export function costOfTokens(price: Price): CostOfTokens {
  const none = { uncached: 0, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0 }
  return (tokensIn, tokensOut, atMost) => {
    const plain = attemptCost(price, { ...none, uncached: tokensIn, output: tokensOut })
    if (!atMost) return plain
    return Math.max(plain, attemptCost(price, { ...none, cache_write_5m: tokensIn, output: tokensOut }))
  }
}

async function listed(
  listPrices: () => Promise<BuiltinPrices>,
  provider: ProviderId,
  models: readonly string[],
  dialect: DialectName,
  on: Date,
): Promise<Price | undefined> {
  for (const model of models) {
    const vendor = provider === 'router' ? ofVendor(model) : { pricedAs: vendorOf(provider).pricedAs, model }
    if (vendor?.pricedAs === undefined) continue
    const price = (await listPrices()).find(vendor.pricedAs, vendor.model, dialect, on)
    if (price) return price
  }
  return undefined
}

/** Behind a router the vendor shows in the model's name alone. */
function ofVendor(model: string): { pricedAs: string | undefined; model: string } | undefined {
  const name = modelName(model)
  return name?.kind === 'model' ? { pricedAs: vendorOf(name.provider).pricedAs, model: name.model } : undefined
}
