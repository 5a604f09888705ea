import type { DialectName } from '../../shared/dialects/candidate.ts'
import { boundedSum, type NanoUsd, nanoFromPico } from '../../shared/money/money.ts'
import type { ClassPrices, Price } from '../../shared/prices/price.ts'
import { rateOf } from '../../shared/prices/price.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import type { Budget } from '../config/routing-config.ts'

const TOKENS_PER_BYTE = 0.5
const MEDIA_TOKEN_BOUND = 5000
/** The longest context that a model which reads documents is documented with; a longer call is refused, and not billed. */
const LONGEST_CONTEXT = 1_000_000

export interface BoundFactors {
  readonly tokensPerByte: number
  readonly mediaTokenBound: number
}

/** The factors that hold for a request: those of its tenant, else of its route or the config, else the defaults. */
export function boundFactors(...budgets: readonly (Budget | undefined)[]): BoundFactors {
  return {
    tokensPerByte: budgets.find(one => one?.tokensPerByte != null)?.tokensPerByte ?? TOKENS_PER_BYTE,
    mediaTokenBound: budgets.find(one => one?.mediaTokenBound != null)?.mediaTokenBound ?? MEDIA_TOKEN_BOUND,
  }
}

export interface CallSize {
  readonly bodyBytes: number
  /** Bytes of images, documents and audio, which a bound for each of them stands in for. */
  readonly mediaBytes: number
  /** Of them those of documents, which may have any number of pages. */
  readonly documentBytes: number
  readonly mediaCount: number
  /** The client's limit; the model's own where it named none. */
  readonly maxTokens: number
  readonly n: number
  /** What a provider adds from a conversation that it keeps. */
  readonly heldTokens?: number
}

export interface TokenBound {
  readonly input: number
  readonly output: number
}

/** docs/spec/router.md §4, step 5: no call of this size uses more tokens. */
export function tokenBound(size: CallSize, factors: BoundFactors, context = LONGEST_CONTEXT): TokenBound {
  const text = Math.max(0, size.bodyBytes - size.mediaBytes)
  const media = size.mediaCount * factors.mediaTokenBound
  // A page of dense text is billed as some 2,500 tokens and takes four thousand bytes, five and a half in base64.
  const pages = Math.min(size.documentBytes * factors.tokensPerByte, context)
  return {
    input: Math.ceil(text * factors.tokensPerByte + pages) + media + (size.heldTokens ?? 0),
    output: Math.max(0, size.maxTokens) * Math.max(1, size.n),
  }
}

/** Which cache writes a call may be billed for. */
export type CacheWrites = 'none' | '5m' | '1h'

const NAME = utf8('cache_control')
const HOUR = utf8('"1h"')
/** How OpenAI is asked to keep a prompt for longer than half an hour. */
const HALF_DAY = utf8('"12h"')
/** `\\u002` to `\\u007`: ASCII that is written as an escape, and could spell anything. */
const ESCAPES = [2, 3, 4, 5, 6, 7].map(high => utf8(`\\u00${high}`))

/**
 * The dearest cache write that a body can ask for. In the messages dialect nothing is written without `cache_control`, and for an
 * hour only where its ttl says so; where the words could be spelled in escapes, all is possible. Chat hosts write as they like, and
 * for longer where they are asked.
 */
export function cacheWritesOf(body: Uint8Array, dialect: DialectName): CacheWrites {
  if (ESCAPES.some(words => holds(body, words))) return '1h'
  if (dialect !== 'messages') return holds(body, HALF_DAY) ? '1h' : '5m'
  if (!holds(body, NAME)) return 'none'
  return holds(body, HOUR) ? '1h' : '5m'
}

/** Whether a body could bring sound. */
export const mayHear = (body: Uint8Array): boolean => holds(body, SOUND) || ESCAPES.some(words => holds(body, words))
const SOUND = utf8('input_audio')

function holds(body: Uint8Array, words: Uint8Array): boolean {
  const [first = 0] = words
  for (let at = body.indexOf(first); at >= 0; at = body.indexOf(first, at + 1)) {
    if (words.every((byte, i) => body[at + i] === byte)) return true
  }
  return false
}

/**
 * What a call may cost at most: all input at the dearest input class that can apply, in the dearest tier that so much input could
 * reach, under the words that have other prices, and with sound; beside them the fee of the call. More than one amount can hold is an amount that fits no budget.
 */
export function costBound(
  price: Price,
  bound: TokenBound,
  writes: CacheWrites = '1h',
  { rates = [], hears = false, speaks = false }: { rates?: readonly string[]; hears?: boolean; speaks?: boolean } = {},
): NanoUsd {
  let input = dearestInput(price.base, writes)
  let { output } = price.base
  for (const { aboveInputTokens, prices } of price.tiers) {
    if (bound.input <= aboveInputTokens) continue
    input = larger(input, dearestInput(prices, writes))
    output = larger(output, prices.output)
  }
  if (hears && price.audio !== undefined) input = larger(input, price.audio.input)
  if (speaks && price.audio !== undefined) output = larger(output, price.audio.output)
  const { times, over } = rateOf(price.rates, rates)
  const pico = ((input * tokens(bound.input) + output * tokens(bound.output)) * times) / over
  return pico < MOST_PICO ? boundedSum(nanoFromPico(pico), price.call ?? 0) : Number.MAX_SAFE_INTEGER
}

const MOST_PICO = BigInt(Number.MAX_SAFE_INTEGER) * 1000n

const larger = (a: bigint, b: bigint) => (a > b ? a : b)

function dearestInput(prices: ClassPrices, writes: CacheWrites): bigint {
  let most = larger(prices.uncached, prices.cache_read)
  if (writes !== 'none') most = larger(most, prices.cache_write_5m)
  return writes === '1h' ? larger(most, prices.cache_write_1h) : most
}

const tokens = (count: number) => BigInt(Math.min(Math.ceil(count), Number.MAX_SAFE_INTEGER))
