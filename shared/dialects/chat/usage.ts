import type { Billing, Tokens } from '../candidate.ts'
import { PLAIN_BILLING, possibleTokens, statedCost, tokenCount } from '../estimate.ts'
import { asObject, asString, isObject, type Json, type JsonObject } from '../json-value.ts'

/**
 * Tokens of a chat usage object; its prompt count includes the cached part, which is taken out here. Null for an object that counts nothing:
 * what it would make free is estimated then, as where a host sends none.
 */
export function chatTokens(usage: JsonObject): Tokens | null {
  const [prompt, completion] = [tokenCount(usage.prompt_tokens), tokenCount(usage.completion_tokens ?? 0)]
  if (prompt === undefined || completion === undefined) return null
  const output = wholeOutput(usage, prompt, completion)
  const details = asObject(usage.prompt_tokens_details)
  const read =
    tokenCount(details.cached_tokens) ??
    tokenCount(usage.prompt_cache_hit_tokens) ??
    // Moonshot and Together.
    tokenCount(usage.cached_tokens) ??
    0
  return possibleTokens({ cache_read: read, output, ...inputOf(prompt, read, details) })
}

/** What a chunk counts; Groq says it beside the id of its own where it was not asked. */
export const usageOf = ({ usage, x_groq: groq }: JsonObject): Json | undefined =>
  isObject(usage) ? usage : (asObject(groq).usage ?? usage)

/** Some hosts count reasoning beside the output; it is in their total. */
export const wholeOutput = ({ total_tokens: total }: JsonObject, input: number, output: number): number =>
  Math.max(output, (tokenCount(total) ?? 0) - input)

/** The rest of a prompt: what the cache took, for how long, and what it knows nothing of. */
export function inputOf(
  prompt: number,
  read: number,
  details: JsonObject,
): Pick<Tokens, 'cache_write_1h' | 'cache_write_5m' | 'uncached'> {
  const { ttl_30m_tokens: _, ...longer } = asObject(details.cache_write_tokens_details)
  const long = Object.values(longer).reduce<number>((sum, count) => sum + (tokenCount(count) ?? 0), 0)
  const written = Math.max(tokenCount(details.cache_write_tokens) ?? 0, long)
  return { cache_write_1h: long, cache_write_5m: written - long, uncached: Math.max(0, prompt - read - written) }
}

/** What OpenAI bills an answer by beside its text: the tier that served it, sound, and the search that some models make each time. */
export function chatBilling(answer: JsonObject): Billing {
  const usage = asObject(answer.usage)
  return {
    ...PLAIN_BILLING,
    rates: tierRates(answer.service_tier),
    stated: statedCost(usage),
    webSearches: /-search-(?:preview|api)/.test(asString(answer.model) ?? '') ? 1 : 0,
    audioInput: tokenCount(asObject(usage.prompt_tokens_details).audio_tokens) ?? 0,
    audioOutput: tokenCount(asObject(usage.completion_tokens_details).audio_tokens) ?? 0,
  }
}

/** The tiers of OpenAI that have prices of their own; `fast` is another word for `priority`. */
export function tierRates(tier: Json | undefined): readonly string[] {
  const word = tier === 'fast' ? 'priority' : tier
  return word === 'priority' || word === 'ultrafast' || word === 'flex' ? [word] : []
}
