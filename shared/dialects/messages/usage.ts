import type { Tokens } from '../candidate.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asObject, isArray, without } from '../json-value.ts'
import { tokenCount } from '../token-count.ts'

/** Counts that a message_delta carries and official clients take from it, in the order of the wire. */
export const DELTA_USAGE = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  'output_tokens_details',
  'server_tool_use',
  'iterations',
  'fallback_credit',
] as const

/** The largest count seen of each kind. */
interface Most {
  input?: number
  output?: number
  read?: number
  written?: number
  written5m?: number
  written1h?: number
  searches?: number
}

export interface MessagesUsage {
  /** Takes in the usage of a start, of a delta or of a whole answer. */
  see(usage: JsonObject): void
  /** Null where nothing was counted: what would be free then is estimated. */
  tokens(): Tokens | null
  readonly serviceTier: string | null
  readonly webSearches: number
}

/**
 * Usage of a messages answer over all the objects that carry it. Counts are cumulative, so of each field the largest value
 * seen is the true one; adding them up would count the start twice.
 */
export function messagesUsage(): MessagesUsage {
  const most: Most = {}
  let serviceTier: string | null = null
  let compactions: readonly Tokens[] = []

  function raise(name: keyof Most, value: number | undefined): void {
    if (value !== undefined && value >= (most[name] ?? 0)) most[name] = value
  }

  return {
    see(usage) {
      const written = asObject(usage.cache_creation)
      raise('input', tokenCount(usage.input_tokens))
      raise('output', tokenCount(usage.output_tokens))
      raise('read', tokenCount(usage.cache_read_input_tokens))
      raise('written', tokenCount(usage.cache_creation_input_tokens))
      raise('written5m', tokenCount(written.ephemeral_5m_input_tokens))
      raise('written1h', tokenCount(written.ephemeral_1h_input_tokens))
      raise('searches', tokenCount(asObject(usage.server_tool_use).web_search_requests))
      if (typeof usage.service_tier === 'string') serviceTier = usage.service_tier
      if (isArray(usage.iterations)) compactions = compactionsIn(usage.iterations)
    },

    tokens() {
      const { searches: _, ...counted } = most
      if (Object.keys(counted).length === 0) return null
      const hour = most.written1h ?? 0
      const total = most.written
      const counts = {
        cache_read: most.read ?? 0,
        cache_write_1h: hour,
        // Where the split and the total disagree, the split is believed for the hour and the total for the rest.
        cache_write_5m: total === undefined ? (most.written5m ?? 0) : Math.max(0, total - hour),
        output: most.output ?? 0,
        uncached: most.input ?? 0,
      }
      return compactions.reduce(added, counts)
    },

    get serviceTier() {
      return serviceTier
    },

    get webSearches() {
      return most.searches ?? 0
    },
  }
}

/** A compaction is a request of its own at the same model, and the totals leave it out. */
function compactionsIn(iterations: readonly Json[]): Tokens[] {
  return iterations.flatMap(iteration => {
    const { type, ...counts } = asObject(iteration)
    if (type !== 'compaction') return []
    const usage = messagesUsage()
    usage.see(without(counts, 'iterations'))
    return usage.tokens() ?? []
  })
}

const added = (a: Tokens, b: Tokens): Tokens => ({
  cache_read: a.cache_read + b.cache_read,
  cache_write_1h: a.cache_write_1h + b.cache_write_1h,
  cache_write_5m: a.cache_write_5m + b.cache_write_5m,
  output: a.output + b.output,
  uncached: a.uncached + b.uncached,
})
