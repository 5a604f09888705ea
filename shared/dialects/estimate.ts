import { fromUsd, type NanoUsd } from '../money/money.ts'
import type { Billing, Candidate, Tokens } from './candidate.ts'
import { asObject, type Json, type JsonObject } from './json-value.ts'
import { utf8Bytes } from './text-pieces.ts'

/** Tokens of text without a count: one per four bytes, rounded up. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / 4)
}

/** What an answer that was cut has cost at least: the last usage seen, and no less output than the text that came. */
export function atLeast(seen: Tokens | null, textBytes: number): Tokens {
  const base = seen ?? { cache_read: 0, cache_write_1h: 0, cache_write_5m: 0, output: 0, uncached: 0 }
  return { ...base, output: Math.max(base.output, tokensOfBytes(textBytes)) }
}

/** UTF-8 bytes of everything the model wrote in an answer. */
export function writtenBytes({ dialect, choices }: Candidate): number {
  let bytes = 0
  for (const { text, thinking, refusal, toolCalls } of choices) {
    bytes += utf8Bytes(text) + utf8Bytes(thinking)
    // In the messages dialect a refusal is the text itself.
    if (dialect !== 'messages' && refusal !== null) bytes += utf8Bytes(refusal)
    for (const call of toolCalls) bytes += utf8Bytes(call.name) + utf8Bytes(call.arguments)
  }
  return bytes
}

/** More than any answer has, and less than any price could turn into more money than one amount can hold. */
const MOST_TOKENS = 100_000_000

/** A token field of a usage object: a count, or undefined for anything that is not one. */
export function tokenCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Null for counts that no answer can have: they say nothing, and are estimated as where a host sends none. */
export function possibleTokens(tokens: Tokens): Tokens | null {
  const { uncached, cache_write_5m, cache_write_1h, cache_read, output } = tokens
  const all = uncached + cache_write_5m + cache_write_1h + cache_read + output
  return all > 0 && all <= MOST_TOKENS ? tokens : null
}

/** A larger count is not believed. */
const MOST_SEARCHES = 1000
export const possibleSearches = (count: number): number => Math.min(count, MOST_SEARCHES)

/** A larger amount for one answer is not believed. */
const MOST_STATED_USD = 10_000

/**
 * What a provider says that it bills for an answer: xAI in ticks of 10^-10 dollars, OpenRouter in dollars, beside what the caller's own key is billed,
 * Perplexity in dollars by part.
 */
export function statedCost({
  cost,
  cost_details: details,
  cost_in_usd_ticks: ticks,
  is_byok: ownKey,
}: JsonObject): NanoUsd {
  const usd = Math.max(
    amount(ticks) / 1e10,
    amount(cost) + (ownKey === true ? amount(asObject(details).upstream_inference_cost) : 0),
    amount(asObject(cost).total_cost),
  )
  return usd <= MOST_STATED_USD ? fromUsd(usd) : 0
}

const amount = (value: Json | undefined): number => (typeof value === 'number' && value > 0 ? value : 0)

export const PLAIN_BILLING: Billing = {
  rates: [],
  webSearches: 0,
  fees: 0,
  stated: 0,
  audioInput: 0,
  audioOutput: 0,
  fallback: null,
  others: [],
}
