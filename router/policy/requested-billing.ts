import type { DialectName } from '../../shared/dialects/candidate.ts'
import { tierRates } from '../../shared/dialects/chat/usage.ts'
import { eachMember, keyTable, readSpan, wholeObject } from '../../shared/dialects/json-members.ts'
import { spanText } from '../../shared/dialects/json-scan.ts'
import { asArray, asObject, asString, isArray, type Json, tryParse } from '../../shared/dialects/json-value.ts'
import { FILE_SEARCH, machineFee } from '../../shared/dialects/responses/usage.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import { type Price, searchFee } from '../../shared/prices/price.ts'
import { type CacheWrites, costBound, type TokenBound } from './cost-bound.ts'

/** What a request asks its provider for that is billed beside its tokens at list prices. */
export interface RequestedBilling {
  readonly rates: readonly string[]
  /** It wants to hear an answer. */
  readonly speaks: boolean
  readonly searches: number
  /** What its other tools may cost. */
  readonly fees: NanoUsd
  /** Models that may be called for it as well, each as often as it stands here. null: one that the provider chooses. */
  readonly others: readonly (string | null)[]
}

const OF_MESSAGES = keyTable(['tools', 'fallbacks', 'speed', 'inference_geo'])
const OF_OPENAI = keyTable(['tools', 'service_tier', 'modalities'])
type Member = (typeof OF_MESSAGES | typeof OF_OPENAI)['names'][number]

/** The iterations after which Anthropic pauses an answer that searches. */
const MOST_SEARCHES = 10
const MOST_USES = 100
/** Beside the asked one. A request names a few; looking up the prices of thousands would hold other calls up, so it fits no budget. */
const MOST_MODELS = 100

/** What the text of tools has where one of them is billed; an escape may hide it. Most are kilobytes of schemas without. */
const BILLED_TOOLS = /web_search|file_search|code_interpreter|shell|advisor_|\\u/

export function requestedBilling(body: Uint8Array, dialect: DialectName): RequestedBilling {
  const rates = new Set<string>()
  const others: (string | null)[] = []
  let speaks = false
  let searches = 0
  let fees = 0
  const noteTools = (value: Json | undefined) => {
    for (const tool of asArray(value).map(asObject)) {
      const type = asString(tool.type) ?? ''
      const uses = typeof tool.max_uses === 'number' ? Math.min(Math.max(0, tool.max_uses), MOST_USES) : undefined
      if (type === 'file_search') fees += MOST_SEARCHES * FILE_SEARCH
      if (type.startsWith('web_search')) searches += uses ?? MOST_SEARCHES
      if (type.startsWith('advisor_'))
        others.push(...Array<string | null>(Math.ceil(uses ?? 1)).fill(asString(tool.model)))
    }
    if (dialect === 'responses') fees += machineFee(asArray(value))
  }
  const note = (name: Member, value: Json | undefined) => {
    if (name === 'tools') noteTools(value)
    else if (name === 'fallbacks') {
      for (const next of isArray(value) ? value.map(asObject) : [{}]) {
        others.push(asString(next.model))
        if (next.speed === 'fast') rates.add('fast')
      }
    } else if (name === 'modalities') speaks ||= asArray(value).includes('audio')
    else if (name === 'service_tier') for (const rate of tierRates(value)) rates.add(rate)
    else if (value === (name === 'speed' ? 'fast' : 'us')) rates.add(value)
  }
  wholeObject(body, c =>
    eachMember<Member>(c, dialect === 'messages' ? OF_MESSAGES : OF_OPENAI, key => {
      const span = readSpan(c)
      if (key === undefined) return
      const text = spanText(body, span)
      if (key !== 'tools' || BILLED_TOOLS.test(text)) note(key, tryParse(text))
    }),
  )
  return { rates: [...rates], speaks, searches, fees, others }
}

/** What a call may cost at most with all of that; a model without a known price is taken to cost what the asked one does. */
export function billedBound(
  price: Price,
  bound: TokenBound,
  writes: CacheWrites,
  asked: RequestedBilling & { hears: boolean },
  priceOf: (model: string) => Price | undefined,
): NanoUsd {
  const { rates, speaks, hears, searches, others } = asked
  const fees = searches * (price.webSearch ?? searchFee('chat')) + asked.fees
  const times = new Map<string | null, number>()
  for (const name of others) times.set(name, (times.get(name) ?? 0) + 1)
  if (times.size > MOST_MODELS) return Number.MAX_SAFE_INTEGER
  const bounds = [...times].map(
    ([name, often]) => often * costBound((name && priceOf(name)) || price, bound, writes, { rates }),
  )
  const own = costBound(price, bound, writes, { rates, speaks, hears })
  return bounds.reduce(
    (sum, one) => Math.min(sum + one, Number.MAX_SAFE_INTEGER),
    Math.min(own + fees, Number.MAX_SAFE_INTEGER),
  )
}
