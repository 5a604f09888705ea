import type { Tokens } from '../candidate.ts'
import type { JsonObject } from '../json-value.ts'
import { asObject } from '../json-value.ts'
import { tokenCount } from '../token-count.ts'

/** Tokens of a chat usage object; its prompt count includes the cached part, which is taken out here. */
export function chatTokens(usage: JsonObject): Tokens {
  const details = asObject(usage.prompt_tokens_details)
  const read = tokenCount(details.cached_tokens) ?? tokenCount(usage.prompt_cache_hit_tokens) ?? 0
  const written = tokenCount(details.cache_write_tokens) ?? 0
  return {
    uncached: Math.max(0, (tokenCount(usage.prompt_tokens) ?? 0) - read - written),
    cache_write_5m: written,
    cache_write_1h: 0,
    cache_read: read,
    output: tokenCount(usage.completion_tokens) ?? 0,
  }
}
