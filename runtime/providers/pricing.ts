import type { DialectName, Tokens } from '../../shared/dialects/candidate.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { BuiltinPrices } from '../../shared/prices/builtin.ts'
import { attemptCost, classPrices, type Price } from '../../shared/prices/price.ts'
import { modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'
import { vendorOf } from './vendors.ts'

export interface Priced {
  provider: ProviderId
  /** The model as it was asked for, and as it answered: a dated name of the same model, mostly. */
  asked: string
  answered: string
  dialect: DialectName
  tokens: Tokens
}

/** Nano-USD of a call; undefined where nobody says what the model costs. */
export type CostOf = (call: Priced) => Promise<NanoUsd | undefined>

/** A tenant's own prices, then the list prices of the vendors, then none. */
export function pricing(
  settings: () => Promise<Pick<ModelSettings, 'prices'>>,
  listPrices: () => Promise<BuiltinPrices>,
  now: () => Date,
): CostOf {
  return async ({ provider, asked, answered, dialect, tokens }) => {
    const { prices } = await settings()
    const own = prices[`${provider}/${asked}`] ?? prices[`${provider}/${answered}`]
    if (own) {
      const base = classPrices({ input: own.inPerMTok, output: own.outPerMTok }, dialect)
      return attemptCost({ base, tiers: [] }, tokens)
    }
    const price = await listed(listPrices, provider, [answered, asked], dialect, now())
    return price && attemptCost(price, tokens)
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
