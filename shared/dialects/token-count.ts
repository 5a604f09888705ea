import type { Billing, Tokens } from './candidate.ts'
import type { Json } from './json-value.ts'

/** More than any answer has, and less than any price could turn into more money than one amount can hold. */
const MOST_TOKENS = 100_000_000

/** A token field of a usage object: a count, or undefined for anything that is not one. */
export function tokenCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Null for counts that no answer can have: they say nothing, and are estimated as where a host sends none. */
export function possibleTokens(tokens: Tokens): Tokens | null {
  const { uncached, cache_write_5m, cache_write_1h, cache_read, output } = tokens
  return uncached + cache_write_5m + cache_write_1h + cache_read + output <= MOST_TOKENS ? tokens : null
}

/** A larger count is not believed. */
const MOST_SEARCHES = 1000
export const possibleSearches = (count: number): number => Math.min(count, MOST_SEARCHES)

export const PLAIN_BILLING: Billing = {
  rates: [],
  webSearches: 0,
  audioInput: 0,
  audioOutput: 0,
  fallback: null,
  others: [],
}
