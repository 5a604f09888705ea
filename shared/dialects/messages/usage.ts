import { type Billing, NO_TOKENS, type Tokens } from '../candidate.ts'
import { possibleSearches, possibleTokens, statedCost, tokenCount } from '../estimate.ts'
import { asObject, asString, isArray, type Json, type JsonObject, without } from '../json-value.ts'

/** Counts that a message_delta carries and official clients take from it, in the order of the wire. */
const DELTA_USAGE = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  'output_tokens_details',
  'server_tool_use',
  'iterations',
  'fallback_credit',
] as const

/** The counts that a delta states. Null means that a count does not apply, and a client would take a zero for a count. */
export function knownCounts(usage: JsonObject): JsonObject {
  return Object.fromEntries(DELTA_USAGE.flatMap(name => (usage[name] == null ? [] : [[name, usage[name]]])))
}

/** The last of a longer list count: each may be of a model whose price is looked up. */
const MOST_ITERATIONS = 1000

/** The largest count seen of each kind. */
interface Most {
  input?: number
  output?: number
  read?: number
  written?: number
  short?: number
  long?: number
  searches?: number
}

export interface MessagesUsage {
  /** Takes in the usage of a start, of a delta or of a whole answer. */
  see(usage: JsonObject): void
  /** Takes in the model that the provider fell back to, if it did. */
  fellBack(to: string | null): void
  /** Of the model that answered. Null where nothing was counted: what would be free then is estimated. */
  tokens(): Tokens | null
  billing(): Billing
}

/** One request of several that made an answer, at the provider. */
interface Iteration {
  readonly type: string | null
  readonly model: string | null
  readonly tokens: Tokens
}

/**
 * Usage of a messages answer over all the objects that carry it. Counts are cumulative, so of each field the largest value
 * seen is the true one; adding them up would count the start twice.
 */
export function messagesUsage(): MessagesUsage {
  const most: Most = {}
  const rates = new Set<string>()
  let fallback: string | null = null
  let stated = 0
  let iterations: readonly Iteration[] = []

  function raise(name: keyof Most, value: number | undefined): void {
    if (value !== undefined && value >= (most[name] ?? 0)) most[name] = value
  }

  /** Requests that the totals leave out, or hold although another model made them. */
  const isOther = ({ type, model }: Iteration): boolean =>
    type === 'advisor_message' || (fallback !== null && model !== null && model !== fallback)
  const ofOthers = () => iterations.filter(isOther)

  return {
    see(usage) {
      const { ephemeral_5m_input_tokens: short, ...longer } = asObject(usage.cache_creation)
      raise('input', tokenCount(usage.input_tokens))
      raise('output', tokenCount(usage.output_tokens))
      raise('read', tokenCount(usage.cache_read_input_tokens))
      raise('written', tokenCount(usage.cache_creation_input_tokens))
      raise('short', tokenCount(short))
      raise('long', sumOf(Object.values(longer).map(tokenCount)))
      raise('searches', tokenCount(asObject(usage.server_tool_use).web_search_requests))
      stated = Math.max(stated, statedCost(usage))
      if (usage.speed === 'fast') rates.add('fast')
      if (usage.inference_geo === 'us') rates.add('us')
      if (!isArray(usage.iterations)) return
      iterations = usage.iterations.slice(-MOST_ITERATIONS).map(iterationOf)
      fallback = iterations.findLast(({ type }) => type === 'fallback_message')?.model ?? fallback
    },

    fellBack(to) {
      fallback = to ?? fallback
    },

    tokens() {
      const { searches: _, ...counted } = most
      if (Object.keys(counted).length === 0) return null
      const long = most.long ?? 0
      const total = most.written
      const totals = {
        cache_read: most.read ?? 0,
        cache_write_1h: long,
        // Where the split and the total disagree, the split is believed for what is kept long and the total for the rest.
        cache_write_5m: total === undefined ? (most.short ?? 0) : Math.max(0, total - long),
        output: most.output ?? 0,
        uncached: most.input ?? 0,
      }
      const compactions = iterations.filter(({ type }) => type === 'compaction')
      return possibleTokens(
        compactions.reduce((sum, { tokens }) => combined(sum, tokens, (a, b) => a + b), served(totals)),
      )
    },

    billing() {
      return {
        rates: [...rates],
        webSearches: possibleSearches(most.searches ?? 0),
        fees: 0,
        stated,
        audioInput: 0,
        audioOutput: 0,
        fallback,
        others: ofOthers().map(({ model, tokens }) => ({ model, tokens })),
      }
    },
  }

  /** After a fallback the totals may hold what the models before it used, which is billed beside them: no less than its own requests used. */
  function served(totals: Tokens): Tokens {
    const sum = (list: readonly Iteration[]) =>
      list.reduce((all, { tokens }) => combined(all, tokens, (a, b) => a + b), NO_TOKENS)
    const own = iterations.filter(one => one.model === fallback && one.type !== 'compaction' && !isOther(one))
    if (fallback === null || own.length === 0) return totals
    const before = sum(ofOthers().filter(({ type }) => type !== 'advisor_message'))
    return combined(
      sum(own),
      combined(totals, before, (a, b) => a - b),
      Math.max,
    )
  }
}

function iterationOf(iteration: Json): Iteration {
  const { type, model, ...counts } = asObject(iteration)
  const usage = messagesUsage()
  usage.see(without(counts, 'iterations'))
  return { type: asString(type), model: asString(model), tokens: usage.tokens() ?? NO_TOKENS }
}

const sumOf = (counts: readonly (number | undefined)[]): number | undefined =>
  counts.reduce((sum, count) => (count === undefined ? sum : (sum ?? 0) + count), undefined)

const combined = (a: Tokens, b: Tokens, of: (a: number, b: number) => number): Tokens => ({
  cache_read: of(a.cache_read, b.cache_read),
  cache_write_1h: of(a.cache_write_1h, b.cache_write_1h),
  cache_write_5m: of(a.cache_write_5m, b.cache_write_5m),
  output: of(a.output, b.output),
  uncached: of(a.uncached, b.uncached),
})
