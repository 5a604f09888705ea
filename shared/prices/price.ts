import type { DialectName, Tokens } from '../dialects/candidate.ts'
import { type NanoUsd, nanoFromPico } from '../money/money.ts'

/**
 * Pico-USD for one token of each class. A list price has at most 6 decimals of dollars per million tokens, so it is
 * a whole number here (price · 10^6) and costs are exact until their one rounding.
 */
export type ClassPrices = Readonly<Record<keyof Tokens, bigint>>

export interface Price {
  base: ClassPrices
  /** Ascending; the whole attempt is priced at the last tier that its input tokens exceed. */
  tiers: readonly { aboveInputTokens: number; prices: ClassPrices }[]
}

/** Dollars per million tokens, as vendors publish them. */
export interface ListPrice {
  input: number
  output: number
  cacheWrite5m?: number | undefined
  cacheWrite1h?: number | undefined
  cacheRead?: number | undefined
}

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
    cache_write_1h: cache(list.cacheWrite1h, factors.cache_write_1h),
    cache_read: cache(list.cacheRead, factors.cache_read),
    output: picoPerToken(list.output),
  }
}

/** Cost of an attempt: exact over the five classes, then rounded half up to nano-USD once. */
export function attemptCost(price: Price, tokens: Tokens): NanoUsd {
  const prices = pricesFor(price, inputTokens(tokens))
  let pico = 0n
  for (const name of CLASSES) if (tokens[name] > 0) pico += BigInt(tokens[name]) * prices[name]
  return nanoFromPico(pico)
}

/** The same by what it went on; `input` is the rest, so that the parts are the cost. */
export function costParts(
  price: Price,
  tokens: Tokens,
): Record<'input' | 'cacheRead' | 'cacheWrite' | 'output', NanoUsd> {
  const prices = pricesFor(price, inputTokens(tokens))
  const of = (...names: (keyof Tokens)[]) => {
    return nanoFromPico(names.reduce((sum, name) => sum + BigInt(tokens[name]) * prices[name], 0n))
  }
  const total = attemptCost(price, tokens)
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
