import type { Billing, Tokens } from '../candidate.ts'
import { inputOf, tierRates, wholeOutput } from '../chat/usage.ts'
import { PLAIN_BILLING, possibleSearches, possibleTokens, tokenCount } from '../estimate.ts'
import { asArray, asObject, asString, type Json, type JsonObject } from '../json-value.ts'

/** The input count includes what the cache gave and took, which is taken out here, and the output count the reasoning. */
export function responsesTokens(usage: JsonObject): Tokens | null {
  const [input, written] = [tokenCount(usage.input_tokens), tokenCount(usage.output_tokens ?? 0)]
  if (input === undefined || written === undefined) return null
  const output = wholeOutput(usage, input, written)
  const details = asObject(usage.input_tokens_details)
  const read = tokenCount(details.cached_tokens) ?? 0
  return possibleTokens({ cache_read: read, output, ...inputOf(input, read, details) })
}

const NOTHING: Tokens = { cache_read: 0, cache_write_1h: 0, cache_write_5m: 0, output: 0, uncached: 0 }

/** The tier that served it, its searches, and the pictures that a tool of the provider drew, by a model that is not named. */
export function responsesBilling(response: JsonObject): Billing {
  const tools = asObject(response.tool_usage)
  const drawn = responsesTokens(asObject(tools.image_gen))
  const items = asArray(response.output)
  const draws =
    items.some(item => asObject(item).type === 'image_generation_call') || (drawn !== null && drawn.output > 0)
  return {
    ...PLAIN_BILLING,
    rates: tierRates(response.service_tier),
    webSearches: possibleSearches(
      tokenCount(asObject(tools.web_search).num_requests) ?? items.filter(isWebSearch).length,
    ),
    others: draws ? [{ model: null, tokens: drawn ?? NOTHING }] : [],
  }
}

/** Why a response ended: the limit or filter that cut it, else its status. */
export function responsesFinish(response: JsonObject): string | null {
  return asString(asObject(response.incomplete_details).reason) ?? asString(response.status)
}

/** To open a page and to look into it are actions of the same item, and no searches. */
function isWebSearch(item: Json): boolean {
  const { type, action } = asObject(item)
  return type === 'web_search_call' && (asObject(action).type ?? 'search') === 'search'
}
