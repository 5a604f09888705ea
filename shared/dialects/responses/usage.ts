import type { Tokens } from '../candidate.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString } from '../json-value.ts'
import { tokenCount } from '../token-count.ts'

/** The input count includes what the cache gave and took, which is taken out here, and the output count the reasoning. */
export function responsesTokens(usage: JsonObject): Tokens | null {
  const [input, output] = [tokenCount(usage.input_tokens), tokenCount(usage.output_tokens ?? 0)]
  if (input === undefined || output === undefined) return null
  const details = asObject(usage.input_tokens_details)
  const read = tokenCount(details.cached_tokens) ?? 0
  const written = tokenCount(details.cache_write_tokens) ?? 0
  return {
    cache_read: read,
    cache_write_1h: 0,
    cache_write_5m: written,
    output,
    uncached: Math.max(0, input - read - written),
  }
}

/** Why a response ended: the limit or filter that cut it, else its status. */
export function responsesFinish(response: JsonObject): string | null {
  return asString(asObject(response.incomplete_details).reason) ?? asString(response.status)
}

/** To open a page and to look into it are actions of the same item, and no searches. */
export function isWebSearch(item: Json): boolean {
  const { type, action } = asObject(item)
  return type === 'web_search_call' && (asObject(action).type ?? 'search') === 'search'
}
