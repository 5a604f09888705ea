import { fromUsd, type NanoUsd } from '../../money/money.ts'
import { type Billing, NO_TOKENS, type Tokens } from '../candidate.ts'
import { inputOf, tierRates, wholeOutput } from '../chat/usage.ts'
import { PLAIN_BILLING, possibleSearches, possibleTokens, statedCost, tokenCount } from '../estimate.ts'
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

/** The tier that served it, its searches and machines, what its provider says that it bills, and the pictures that a tool of the provider drew, by a model that is not named. */
export function responsesBilling(response: JsonObject): Billing {
  const tools = asObject(response.tool_usage)
  const drawn = responsesTokens(asObject(tools.image_gen))
  const items = asArray(response.output)
  const draws =
    items.some(item => asObject(item).type === 'image_generation_call') || (drawn !== null && drawn.output > 0)
  return {
    ...PLAIN_BILLING,
    rates: tierRates(response.service_tier),
    stated: statedCost(asObject(response.usage)),
    fees:
      possibleSearches(items.filter(item => asObject(item).type === 'file_search_call').length) * FILE_SEARCH +
      machinesOf(items).size * machineFee(asArray(response.tools)),
    webSearches: possibleSearches(
      tokenCount(asObject(tools.web_search).num_requests) ?? items.filter(isWebSearch).length,
    ),
    others: draws ? [{ model: null, tokens: drawn ?? NO_TOKENS }] : [],
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

/** OpenAI's fee of a search in files, whatever the model. */
export const FILE_SEARCH: NanoUsd = fromUsd(0.0025)

/** Of a machine for code, for twenty minutes, by its memory. */
const MACHINE: Readonly<Record<string, NanoUsd>> = {
  '1g': fromUsd(0.03),
  '4g': fromUsd(0.12),
  '16g': fromUsd(0.48),
  '64g': fromUsd(1.92),
}
/** More in one answer are not believed. */
const MOST_MACHINES = 100

/**
 * The fee of a machine that tools have made where code is to run, the dearest of them. One that the caller made beforehand is billed when it is
 * made.
 */
export function machineFee(tools: readonly Json[]): NanoUsd {
  const fees = tools.map(tool => {
    const { type, container, environment } = asObject(tool)
    const made = asObject(type === 'code_interpreter' ? container : type === 'shell' ? environment : undefined)
    if (made.type !== 'auto' && made.type !== 'container_auto') return 0
    return MACHINE[asString(made.memory_limit) ?? '1g'] ?? MACHINE['64g']!
  })
  return Math.max(0, ...fees)
}

/** The machines that code ran on; an answer does not say whether one is new, so each counts in each answer. */
function machinesOf(items: readonly Json[]): Set<string> {
  const ids = items.map(item => {
    const { container_id: id, environment } = asObject(item)
    return asString(id) ?? asString(asObject(environment).container_id)
  })
  return new Set(ids.filter(id => id !== null).slice(0, MOST_MACHINES))
}
