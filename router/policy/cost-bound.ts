import { type NanoUsd, nanoFromPico } from '../../shared/money/money.ts'
import type { ClassPrices, Price } from '../../shared/prices/price.ts'
import type { Budget } from '../config/routing-config.ts'

const TOKENS_PER_BYTE = 0.5
const MEDIA_TOKEN_BOUND = 5000

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
  readonly mediaCount: number
  /** The client's limit; the model's own where it named none. */
  readonly maxTokens: number
  readonly n: number
}

export interface TokenBound {
  readonly input: number
  readonly output: number
}

/** Router contract §4, step 5: no call of this size uses more tokens. */
export function tokenBound(size: CallSize, factors: BoundFactors): TokenBound {
  const text = Math.max(0, size.bodyBytes - size.mediaBytes)
  return {
    input: Math.ceil(text * factors.tokensPerByte) + size.mediaCount * factors.mediaTokenBound,
    output: Math.max(0, size.maxTokens) * Math.max(1, size.n),
  }
}

/**
 * What a call may cost at most: all input at the dearest input class, in the dearest tier that so much input could
 * reach. More than one amount can hold is an amount that fits no budget.
 */
export function costBound(price: Price, bound: TokenBound): NanoUsd {
  let input = dearestInput(price.base)
  let { output } = price.base
  for (const { aboveInputTokens, prices } of price.tiers) {
    if (bound.input <= aboveInputTokens) continue
    input = larger(input, dearestInput(prices))
    output = larger(output, prices.output)
  }
  const pico = input * tokens(bound.input) + output * tokens(bound.output)
  return pico < MOST_PICO ? nanoFromPico(pico) : Number.MAX_SAFE_INTEGER
}

const MOST_PICO = BigInt(Number.MAX_SAFE_INTEGER) * 1000n

const larger = (a: bigint, b: bigint) => (a > b ? a : b)

const dearestInput = (prices: ClassPrices) =>
  larger(larger(prices.uncached, prices.cache_read), larger(prices.cache_write_5m, prices.cache_write_1h))

const tokens = (count: number) => BigInt(Math.min(Math.ceil(count), Number.MAX_SAFE_INTEGER))
