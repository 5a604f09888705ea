import { fromUsd } from '../../shared/money/money.ts'
import type { BuiltinPrices } from '../../shared/prices/builtin.ts'
import { type ClassPrices, classPrices, PriceError, ratesOf, searchFee } from '../../shared/prices/price.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import type { ModelPrice } from './model.ts'
import type { ListedPrice, PriceTable } from './price-table.ts'
import type { Pricing } from './routing-config.ts'

/** A `[[price]]` entry; the dialect decides what an unlisted cache class costs. */
export function listedPrice(row: PriceTable, dialect: InboundApi): ModelPrice {
  return {
    source: 'config',
    base: classes(row, dialect),
    tiers: (row.tiers ?? []).map(tier => ({
      aboveInputTokens: tier.above_input_tokens,
      prices: classes(tier, dialect),
    })),
    ...(row.per_call_usd !== undefined && { call: fromUsd(row.per_call_usd) }),
    webSearch: row.per_web_search_usd === undefined ? searchFee(dialect) : fromUsd(row.per_web_search_usd),
  }
}

function classes(row: ListedPrice, dialect: InboundApi): ClassPrices {
  const list = {
    input: row.input_per_mtok,
    output: row.output_per_mtok,
    cacheWrite5m: row.cache_write_5m_per_mtok,
    cacheWrite1h: row.cache_write_1h_per_mtok,
    cacheRead: row.cache_read_per_mtok,
  }
  return classPrices(list, dialect)
}

export interface PriceQuery {
  readonly provider: string
  readonly dialect: InboundApi
  /** Names to look for in turn: as configured, as sent upstream, as the upstream answered. */
  readonly names: readonly string[]
}

/** The price of any model, in the config or not: `[[price]]` first, then the bundled table unless it is off. */
export function findPrice(
  pricing: Pricing,
  builtin: BuiltinPrices | undefined,
  { provider, dialect, names }: PriceQuery,
): ModelPrice | undefined {
  for (const name of names) {
    const listed = pricing.overrides[`${provider}/${name}`]
    if (listed !== undefined) return { ...listed, rates: Object.assign({}, ...names.map(ratesOf)) }
  }
  if (!pricing.builtin || builtin === undefined) return undefined
  for (const name of names) {
    const price = bundled(builtin, provider, name, dialect)
    if (price !== undefined) return price
  }
  return undefined
}

function bundled(builtin: BuiltinPrices, provider: string, name: string, dialect: InboundApi): ModelPrice | undefined {
  try {
    const price = builtin.find(provider, name, dialect)
    return price && { webSearch: searchFee(dialect), ...price, source: 'builtin' }
  } catch (error) {
    // A row that cannot be held exactly is no price; the config can name one.
    if (error instanceof PriceError) return undefined
    throw error
  }
}
