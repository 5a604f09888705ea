import type { DialectName } from '../dialects/candidate.ts'
import { fromUsd } from '../money/money.ts'
import { type NewerModel, newerModel } from './newer-models.ts'
import { classPrices, type ListPrice, type Price, ratesOf, searchFee } from './price.ts'

/** Where the bundled table comes from; stands beside its hash on every record. */
export const PRICE_TABLE_VERSION = '@pydantic/genai-prices@0.1.8 with newer models of 2026-11-26'

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
      const newer = newerModel(provider, model)
      if (newer !== undefined) return fromNewer(newer, model, dialect)
      const usage = { input_tokens: 0, output_tokens: 0 }
      const found = calcPrice(usage, model, { providerId: provider, ...(on && { timestamp: on }) })
      return found ? fromTable(model, found.model_price, dialect) : undefined
    },
    window: (provider, model) =>
      newerModel(provider, model)?.window ??
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
  const { web_searches_kcount: kcount, requests_kcount: calls } = listed
  return {
    base: at(0),
    tiers: [...starts].sort((a, b) => a - b).map(start => ({ aboveInputTokens: start, prices: at(start + 1) })),
    rates: ratesOf(model),
    webSearch: typeof kcount === 'number' && !SEARCHES_DEARLY.test(model) ? fromUsd(kcount / 1000) : searchFee(dialect),
    ...(typeof calls === 'number' && { call: fromUsd(calls / 1000) }),
    ...audioOf(model, listed),
  }
}

/** Models without reasoning pay for a search as they did before the table had a fee for it. */
const SEARCHES_DEARLY = /gpt-4/

/** USD per million tokens of sound, in and out, where the table has none. */
const SOUND: readonly (readonly [RegExp, number, number])[] = [
  [/gpt-4o-mini-audio/, 10, 20],
  [/gpt-4o-audio/, 40, 80],
]

function audioOf(model: string, listed: Record<string, ListedPrice>): Pick<Price, 'audio'> {
  const [, input, output] = SOUND.find(([models]) => models.test(model)) ?? [
    undefined,
    listed.input_audio_mtok,
    listed.output_audio_mtok,
  ]
  const pico = (price: ListedPrice) => BigInt(typeof price === 'number' ? Math.round(price * 1e6) : 0)
  return input === undefined && output === undefined ? {} : { audio: { input: pico(input), output: pico(output) } }
}

function fromNewer({ list, above }: NewerModel, model: string, dialect: DialectName): Price {
  return {
    base: classPrices(list, dialect),
    tiers: above ? [{ aboveInputTokens: above.input, prices: classPrices(above.list, dialect) }] : [],
    rates: ratesOf(model),
    webSearch: fromUsd(0.01),
  }
}

/** Usage does not tell them apart for every host, so all output is at the dearest that a model has. */
const OUTPUTS = [
  'output_mtok',
  'output_image_mtok',
  'output_video_mtok',
  'output_reasoning_mtok',
  'output_citation_mtok',
]

function listPriceAt(listed: Record<string, ListedPrice>, input: number): ListPrice {
  const at = (name: string): number | undefined => {
    const price = listed[name]
    if (typeof price !== 'object') return price
    return price.tiers.filter(tier => input > tier.start).at(-1)?.price ?? price.base
  }
  return {
    input: at('input_mtok') ?? 0,
    output: Math.max(...OUTPUTS.map(name => at(name) ?? 0)),
    cacheWrite5m: at('cache_write_mtok'),
    cacheWrite1h: at('cache_write_1h_mtok'),
    cacheRead: at('cache_read_mtok'),
  }
}
