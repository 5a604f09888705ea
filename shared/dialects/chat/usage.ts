import type { Tokens } from '../candidate.ts'
import type { JsonObject } from '../json-value.ts'
import { asObject } from '../json-value.ts'
import { tokenCount } from '../token-count.ts'

/**
 * Tokens of a chat usage object; its prompt count includes the cached part, which is taken out here. Null for an object that counts nothing:
 * what it would make free is estimated then, as where a host sends none.
 */
export function chatTokens(usage: JsonObject): Tokens | null {
  const [prompt, output] = [tokenCount(usage.prompt_tokens), tokenCount(usage.completion_tokens ?? 0)]
  if (prompt === undefined || output === undefined) return null
  const details = asObject(usage.prompt_tokens_details)
  const read = tokenCount(details.cached_tokens) ?? tokenCount(usage.prompt_cache_hit_tokens) ?? 0
  const written = tokenCount(details.cache_write_tokens) ?? 0
  return {
    cache_read: read,
    cache_write_1h: 0,
    cache_write_5m: written,
    output,
    uncached: Math.max(0, prompt - read - written),
  }
}
