import type { Billing, DialectName, Tokens } from '../dialects/candidate.ts'
import { boundedSum, fromUsd, MOST_NANO, type NanoUsd, nanoFromPico } from '../money/money.ts'

/**
 * Pico-USD for one token of each class. A list price has at most 6 decimals of dollars per million tokens, so it is
 * a whole number here (price · 10^6) and costs are exact until their one rounding.
 */
export type ClassPrices = Readonly<Record<keyof Tokens, bigint>>

export interface Price {
  base: ClassPrices
  /** Ascending; the whole attempt is priced at the last tier that its input tokens exceed. */
  tiers: readonly { aboveInputTokens: number; prices: ClassPrices }[]
  /** What is known of it under the words of its provider. */
  rates?: Rates
  /** Fee of each call, beside its tokens. */
  call?: NanoUsd
  /** Fee of one search by the provider. */
  webSearch?: NanoUsd
  /** Of a token of sound; absent where it costs what text does. */
  audio?: { readonly input: bigint; readonly output: bigint }
}

/** Dollars per million tokens, as vendors publish them. */
export interface ListPrice {
  input: number
  output: number
  cacheWrite5m?: number | undefined
  cacheWrite1h?: number | undefined
  cacheRead?: number | undefined
}

/** The dearest search of each dialect that is published, for where no fee is known. */
export const searchFee = (dialect: DialectName): NanoUsd => (dialect === 'messages' ? fromUsd(0.01) : DEAREST_SEARCH)
const DEAREST_SEARCH = fromUsd(0.025)

/** What a cache class costs as a multiple of input when nothing is listed; chat reads are never understated. */
const CACHE_DEFAULTS = {
  messages: { cache_write_5m: 125n, cache_write_1h: 200n, cache_read: 10n },
  chat: { cache_write_5m: 100n, cache_write_1h: 100n, cache_read: 100n },
} as const

export class PriceError extends RangeError {
  override name = 'PriceError'
}

export function classPrices(list: ListPrice, dialect: DialectName): ClassPrices {
  const input = picoPerToken(list.input)
  const factors = CACHE_DEFAULTS[dialect === 'messages' ? 'messages' : 'chat']
  const cache = (listed: number | undefined, percent: bigint) =>
    listed === undefined ? (input * percent + 50n) / 100n : picoPerToken(listed)
  return {
    uncached: input,
    cache_write_5m: cache(list.cacheWrite5m, factors.cache_write_5m),
    cache_write_1h: cache(list.cacheWrite1h ?? longWrite(list, dialect), factors.cache_write_1h),
    cache_read: cache(list.cacheRead, factors.cache_read),
    output: picoPerToken(list.output),
  }
}

/** OpenAI keeps what is written for half a day at twice the price of what is written for half an hour. */
const longWrite = ({ cacheWrite5m }: ListPrice, dialect: DialectName): number | undefined =>
  dialect === 'messages' || cacheWrite5m === undefined ? undefined : cacheWrite5m * 2

type AtOtherPrices = Partial<Pick<Billing, 'rates' | 'audioInput' | 'audioOutput'>>

/** Cost of an attempt: exact over the five classes and sound, then rounded half up to nano-USD once, and the fee of the call; the most that one amount holds, where it is more. */
export function attemptCost(price: Price, tokens: Tokens, billing: AtOtherPrices = {}): NanoUsd {
  const prices = pricesFor(price, inputTokens(tokens))
  const { rates = [], audioInput = 0, audioOutput = 0 } = billing
  let pico = 0n
  for (const name of CLASSES) if (tokens[name] > 0) pico += BigInt(tokens[name]) * prices[name]
  if (price.audio !== undefined) {
    pico += BigInt(audioInput) * dearer(price.audio.input, prices.uncached)
    pico += BigInt(audioOutput) * dearer(price.audio.output, prices.output)
  }
  const { times, over } = rateOf(price.rates, rates)
  const exact = (pico * times + over / 2n) / over
  return boundedSum(exact < MOST_PICO ? nanoFromPico(exact) : MOST_NANO, price.call ?? 0)
}

const MOST_PICO = BigInt(MOST_NANO) * 1000n

const dearer = (audio: bigint, text: bigint): bigint => (audio > text ? audio - text : 0n)

/**
 * Cost of an answer with everything that is billed with it, and no less than its provider says that it bills. null where neither says it: a part
 * of it is of a model whose price is not known, or its tokens are not. `priceOf` finds the prices of the same provider.
 */
export function answerCost(
  price: Price | undefined,
  tokens: Tokens | null,
  billing: Billing,
  priceOf: (model: string) => Price | undefined,
): NanoUsd | null {
  const own = billing.fallback === null ? price : priceOf(billing.fallback)
  const listed = own === undefined || tokens === null ? null : listedCost(own, tokens, billing, priceOf)
  return billing.stated > 0 ? Math.max(listed ?? 0, billing.stated) : listed
}

function listedCost(
  own: Price,
  tokens: Tokens,
  billing: Billing,
  priceOf: (model: string) => Price | undefined,
): NanoUsd | null {
  const searches = billing.webSearches * (own.webSearch ?? DEAREST_SEARCH)
  let sum = boundedSum(attemptCost(own, tokens, billing), searches + billing.fees)
  for (const { model, tokens: used } of billing.others) {
    const its = model === null ? undefined : priceOf(model)
    if (its === undefined) return null
    // An advisor may be one that has no fast mode, and then it is not fast.
    const rates = billing.rates.filter(word => word !== 'fast' || its.rates?.fast !== undefined)
    sum = boundedSum(sum, attemptCost(its, used, { rates }))
  }
  return sum
}

/** A cost by what it went on; `input` is the rest, so that the parts are the whole. */
export function costParts(
  price: Price,
  tokens: Tokens,
  total: NanoUsd,
  rates: readonly string[],
): Record<'input' | 'cacheRead' | 'cacheWrite' | 'output', NanoUsd> {
  const prices = pricesFor(price, inputTokens(tokens))
  const { times, over } = rateOf(price.rates, rates)
  const of = (...names: (keyof Tokens)[]) => {
    return nanoFromPico((names.reduce((sum, name) => sum + BigInt(tokens[name]) * prices[name], 0n) * times) / over)
  }
  const cacheRead = Math.min(of('cache_read'), total)
  const cacheWrite = Math.min(of('cache_write_5m', 'cache_write_1h'), total - cacheRead)
  const output = Math.min(of('output'), total - cacheRead - cacheWrite)
  return { input: total - cacheRead - cacheWrite - output, cacheRead, cacheWrite, output }
}

/** The prices that an attempt with this much input is billed at. */
export function pricesFor(price: Price, input: number): ClassPrices {
  let prices = price.base
  for (const tier of price.tiers) if (input > tier.aboveInputTokens) prices = tier.prices
  return prices
}

export function inputTokens(tokens: Tokens): number {
  return tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read
}

const CLASSES = ['uncached', 'cache_write_5m', 'cache_write_1h', 'cache_read', 'output'] as const

function picoPerToken(usdPerMillion: number): bigint {
  const pico = Math.round(usdPerMillion * 1e6)
  const exact = Math.abs(pico - usdPerMillion * 1e6) < 1e-3
  if (!(usdPerMillion >= 0 && usdPerMillion <= 10_000 && exact)) {
    throw new PriceError(
      `expected a price from 0 to 10000 USD per million tokens with at most 6 decimals, got ${usdPerMillion}`,
    )
  }
  return BigInt(pico)
}

/** Percent of a model's list prices that an answer costs under a word of its provider. */
export type Rates = Readonly<Record<string, number>>

interface Row {
  readonly models: RegExp
  readonly rates: Rates
}

/** As the makers publish them; a part of a percent is rounded up. */
const ROWS: readonly Row[] = [
  { models: /claude-(?:opus-(?:4-8|5(?:-5)?)|(?:fable|mythos)-5-2)(?!\d)/, rates: { fast: 200 } },
  { models: /claude-opus-4-[67](?!\d)/, rates: { fast: 600 } },
  { models: /gpt-5\.5/, rates: { priority: 250, flex: 50 } },
  { models: /gpt-5\.4(?!-)/, rates: { priority: 200, flex: 52 } },
  { models: /gpt-5-mini/, rates: { priority: 180, flex: 50 } },
  { models: /gpt-[56]/, rates: { priority: 200, flex: 50 } },
  { models: /gpt-4\.1-nano/, rates: { priority: 200 } },
  { models: /gpt-4\.1|gpt-4o-2024-05-13/, rates: { priority: 175 } },
  { models: /gpt-4o-mini/, rates: { priority: 167 } },
  { models: /gpt-4o/, rates: { priority: 170 } },
  { models: /(?:^|\/)o3(?!-)|(?:^|\/)o3-\d/, rates: { priority: 175, flex: 50 } },
  { models: /o4-mini/, rates: { priority: 182, flex: 51 } },
  { models: /gemini-/, rates: { priority: 180 } },
]

/** Where its maker publishes none: the dearest of those that are known, and no discount. */
const DEAREST: Rates = { fast: 600, priority: 250, ultrafast: 600, us: 110 }

/** What is known of a model, by any of its names. */
export function ratesOf(name: string): Rates {
  return ROWS.find(({ models }) => models.test(name))?.rates ?? {}
}

/** Numerator and denominator of all words together, so that a cost is rounded once. */
export function rateOf(known: Rates | undefined, words: readonly string[]): { times: bigint; over: bigint } {
  let times = 1n
  let over = 1n
  for (const word of words) {
    times *= BigInt(known?.[word] ?? DEAREST[word] ?? 100)
    over *= 100n
  }
  return { times, over }
}
