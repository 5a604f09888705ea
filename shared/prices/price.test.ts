import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toUsd } from '../money/money.ts'
import { loadBuiltinPrices, PRICE_TABLE_VERSION } from './builtin.ts'
import { attemptCost, classPrices, type Price } from './price.ts'

const tokens = (uncached: number, w5: number, w1h: number, read: number, output: number) => ({
  uncached,
  cache_write_5m: w5,
  cache_write_1h: w1h,
  cache_read: read,
  output,
})
const flat = (price: Price['base']): Price => ({ base: price, tiers: [] })

describe('attemptCost', () => {
  it('gives the worked example of the messages dialect at 3/15 USD', () => {
    const price = flat(classPrices({ input: 3, output: 15 }, 'messages'))
    expect(toUsd(attemptCost(price, tokens(100, 1000, 2000, 10_000, 50)))).toBe(0.0198)
  })

  it('gives the worked example of the chat dialect with a listed read price', () => {
    const price = flat(classPrices({ input: 3, output: 15, cacheRead: 0.3 }, 'chat'))
    expect(toUsd(attemptCost(price, tokens(200, 0, 0, 1000, 50)))).toBe(0.00165)
  })

  it('prices one token at 0.05 USD per million at 50 nano-USD', () => {
    expect(attemptCost(flat(classPrices({ input: 0.05, output: 0 }, 'chat')), tokens(1, 0, 0, 0, 0))).toBe(50)
  })

  it('prices the whole attempt at the tier that its total input exceeds', () => {
    const price: Price = {
      base: classPrices({ input: 1, output: 2 }, 'chat'),
      tiers: [{ aboveInputTokens: 100, prices: classPrices({ input: 2, output: 4 }, 'chat') }],
    }
    expect(attemptCost(price, tokens(60, 0, 0, 40, 1))).toBe(102_000)
    expect(attemptCost(price, tokens(61, 0, 0, 40, 1))).toBe(206_000)
  })

  it('rounds once: the sum of parts differs from the whole by less than half a nano-USD a part', () => {
    const price = flat(classPrices({ input: 0.000001, output: 0.000001 }, 'chat'))
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(100_000), (a, b) => {
        expect(attemptCost(price, tokens(a, 0, 0, 0, b))).toBe(Math.floor((a + b + 500) / 1000))
      }),
    )
  })

  it('refuses a price that is negative, too large or finer than 6 decimals', () => {
    for (const input of [-1, 10_001, 0.0000001, Number.NaN]) {
      expect(() => classPrices({ input, output: 1 }, 'chat')).toThrow('expected a price from 0 to 10000')
    }
  })
})

describe('bundled prices', () => {
  it('know common models of both vendors with their cache classes', async () => {
    const prices = await loadBuiltinPrices()
    expect(prices.find('anthropic', 'claude-sonnet-4-20250514', 'messages')?.base).toEqual(
      classPrices({ input: 3, output: 15, cacheWrite5m: 3.75, cacheWrite1h: 6, cacheRead: 0.3 }, 'messages'),
    )
    expect(prices.find('openai', 'gpt-4.1-mini', 'chat')?.base.cache_read).toBe(100_000n)
  })

  it('do not guess an unknown model', async () => {
    const prices = await loadBuiltinPrices()
    expect(prices.find('anthropic', 'no-such-model', 'messages')).toBeUndefined()
    expect(prices.find('nobody', 'gpt-4.1-mini', 'chat')).toBeUndefined()
  })

  it('name the version that is installed', () => {
    const manifest = JSON.parse(readFileSync('node_modules/@pydantic/genai-prices/package.json', 'utf8')) as {
      name: string
      version: string
    }
    expect(`${manifest.name}@${manifest.version}`).toBe(PRICE_TABLE_VERSION)
  })
})
