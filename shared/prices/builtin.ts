import type { DialectName } from '../dialects/candidate.ts'
import { classPrices, type ListPrice, type Price } from './price.ts'

/** Where the bundled table comes from; stands beside its hash on every record. */
export const PRICE_TABLE_VERSION = '@pydantic/genai-prices@0.1.8'

type Table = typeof import('@pydantic/genai-prices')
type ListedPrice = number | InstanceType<Table['TieredPrices']> | undefined

export interface BuiltinPrices {
  /** The price of a model on a day, or undefined when the table does not know it. */
  find(provider: string, model: string, dialect: DialectName, on?: Date): Price | undefined
}

export interface BuiltinTable extends BuiltinPrices {
  /** Tokens that fit into one call of a model, where the table says it. */
  window(provider: string, model: string): number | undefined
}

/** Loads the bundled table on first use: it is 0.8 MB of source and 70 ms that a pass-through never needs. */
export async function loadBuiltinPrices(): Promise<BuiltinTable> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  return {
    find(provider, model, dialect, on) {
      const usage = { input_tokens: 0, output_tokens: 0 }
      const found = calcPrice(usage, model, { providerId: provider, ...(on && { timestamp: on }) })
      return found ? fromTable(found.model.id, found.model_price, dialect) : undefined
    },
    window: (provider, model) =>
      calcPrice({ input_tokens: 0, output_tokens: 0 }, model, { providerId: provider })?.model.context_window,
  }
}

function fromTable(model: string, listed: Record<string, ListedPrice>, dialect: DialectName): Price | undefined {
  // A model of embeddings writes no tokens; of any other, a missing price is not known, and not free.
  const isPriced = listed.output_mtok !== undefined || /embed/i.test(model)
  if (listed.input_mtok === undefined || !isPriced) return undefined
  const starts = new Set<number>()
  for (const price of Object.values(listed)) {
    if (typeof price === 'object') for (const tier of price.tiers) starts.add(tier.start)
  }
  const at = (input: number) => classPrices(listPriceAt(listed, input), dialect)
  return {
    base: at(0),
    tiers: [...starts].sort((a, b) => a - b).map(start => ({ aboveInputTokens: start, prices: at(start + 1) })),
  }
}

function listPriceAt(listed: Record<string, ListedPrice>, input: number): ListPrice {
  const at = (name: string): number | undefined => {
    const price = listed[name]
    if (typeof price !== 'object') return price
    return price.tiers.filter(tier => input > tier.start).at(-1)?.price ?? price.base
  }
  return {
    input: at('input_mtok') ?? 0,
    output: at('output_mtok') ?? 0,
    cacheWrite5m: at('cache_write_mtok'),
    cacheWrite1h: at('cache_write_1h_mtok'),
    cacheRead: at('cache_read_mtok'),
  }
}
