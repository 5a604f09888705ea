import { readFileSync } from 'node:fs'
import { calcPrice } from '@pydantic/genai-prices'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PLAIN_BILLING, possibleTokens } from '../dialects/estimate.ts'
import { toUsd } from '../money/money.ts'
import { loadBuiltinPrices, PRICE_TABLE_VERSION } from './builtin.ts'
import { NEWER, newerModel } from './newer-models.ts'
import { answerCost, attemptCost, classPrices, type Price, ratesOf } from './price.ts'

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

  it('has room for the most tokens that an answer may count, at the highest price', () => {
    const price = flat(classPrices({ input: 10_000, output: 10_000 }, 'messages'))
    const most = possibleTokens(tokens(0, 0, 1e8, 0, 0))!
    expect(attemptCost(price, most) + 1000 * 1e12).toBeLessThan(Number.MAX_SAFE_INTEGER)
    expect(possibleTokens(tokens(1, 0, 1e8, 0, 0))).toBeNull()
  })

  it('is the most that one amount holds for what no answer has used', () => {
    const price = {
      ...flat(classPrices({ input: 10_000, output: 10_000 }, 'messages')),
      audio: { input: 10n ** 12n, output: 0n },
    }
    const billing = { ...PLAIN_BILLING, audioInput: Number.MAX_SAFE_INTEGER, webSearches: 1000 }
    const others = Array.from({ length: 2000 }, () => ({ model: 'dear', tokens: tokens(1e8, 0, 0, 0, 0) }))
    expect(answerCost(price, tokens(1, 0, 0, 0, 0), billing, () => price)).toBe(Number.MAX_SAFE_INTEGER)
    expect(answerCost(price, tokens(1, 0, 0, 0, 0), { ...PLAIN_BILLING, others }, () => price)).toBe(
      Number.MAX_SAFE_INTEGER,
    )
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

describe('answerCost', () => {
  const price = { ...flat(classPrices({ input: 10, output: 100 }, 'messages')), rates: ratesOf('claude-opus-5') }
  const cheap = flat(classPrices({ input: 1, output: 10 }, 'messages'))
  const used = tokens(100, 0, 0, 0, 10)
  const none = () => undefined
  const usd = (billing: object, priceOf: (model: string) => Price | undefined = none) => {
    const cost = answerCost(price, used, { ...PLAIN_BILLING, ...billing }, priceOf)
    return cost === null ? null : toUsd(cost)
  }

  it('is at list prices without more', () => expect(usd({})).toBe(0.002))
  it('is twice that in fast mode, and a tenth more in one region', () => {
    expect(usd({ rates: ['fast'] })).toBe(0.004)
    expect(usd({ rates: ['fast', 'us'] })).toBe(0.0044)
  })
  it('is that of the dearest known mode where the model has no published one, and of no discount', () => {
    expect(answerCost(cheap, used, { ...PLAIN_BILLING, rates: ['fast'] }, none)).toBe(6 * 200_000)
    expect(answerCost(cheap, used, { ...PLAIN_BILLING, rates: ['priority'] }, none)).toBe(2.5 * 200_000)
    expect(answerCost(cheap, used, { ...PLAIN_BILLING, rates: ['flex'] }, none)).toBe(200_000)
  })
  it('is at the prices of the model that answered, and unknown without them', () => {
    expect(usd({ fallback: 'n' }, () => cheap)).toBe(0.0002)
    expect(usd({ fallback: 'n' })).toBeNull()
  })
  it('holds what other models used, each at its own prices and the advisor not in fast mode', () => {
    const others = [{ model: 'n', tokens: used }]
    expect(usd({ others }, () => cheap)).toBe(0.0022)
    expect(usd({ others, rates: ['fast', 'us'] }, () => cheap)).toBe(0.0044 + 0.00022)
    expect(usd({ others })).toBeNull()
    expect(usd({ others: [{ model: null, tokens: used }] }, () => cheap)).toBeNull()
  })
  it('holds the fee of each search, the dearest one where it is not known', () => {
    expect(answerCost({ ...price, webSearch: 3 }, used, { ...PLAIN_BILLING, webSearches: 2 }, none)).toBe(2_000_006)
    expect(usd({ webSearches: 2 })).toBe(0.052)
  })
  it('holds the fee of each call, and fees that are the same for every model', () => {
    expect(answerCost({ ...cheap, call: 5 }, used, { ...PLAIN_BILLING, fees: 7 }, none)).toBe(200_012)
  })
  it('is no less than what the provider says that it bills, also where no price is known', () => {
    expect(usd({ stated: 3_000_000 })).toBe(0.003)
    expect(usd({ stated: 1_000_000 })).toBe(0.002)
    expect(usd({ stated: 3_000_000, fallback: 'n' })).toBe(0.003)
    expect(answerCost(undefined, null, { ...PLAIN_BILLING, stated: 9 }, none)).toBe(9)
    expect(answerCost(undefined, used, PLAIN_BILLING, none)).toBeNull()
  })
  it('has sound at its own price, and no less than text where that is dearer', () => {
    const loud: Price = { ...cheap, audio: { input: 30_000_000n, output: 1n } }
    expect(attemptCost(loud, used, { audioInput: 40, audioOutput: 10 })).toBe(200_000 + 40 * 29_000)
  })
})

describe('bundled prices', () => {
  it('have the newest models, which the table does not know or has at another price', async () => {
    const prices = await loadBuiltinPrices()
    for (const [provider, models] of Object.entries(NEWER)) {
      const dialect = provider === 'anthropic' ? 'messages' : 'chat'
      for (const [model, { list, above }] of Object.entries(models)) {
        const found = prices.find(provider, `${model}-2026-11-01`, dialect)
        expect(found?.base).toEqual(classPrices(list, dialect))
        expect(found?.tiers.map(({ aboveInputTokens }) => aboveInputTokens)).toEqual(above ? [above.input] : [])
        const tabled = calcPrice({ input_tokens: 0, output_tokens: 0 }, model, { providerId: provider })
        expect(tabled?.model_price.cache_read_mtok, `${model} is in the table now`).not.toBe(list.cacheRead)
      }
    }
  })

  it('leave a model without a published price unpriced, whatever it is the next version of', async () => {
    const prices = await loadBuiltinPrices()
    for (const model of ['claude-fable-5-3', 'claude-haiku-5-5-fast', 'claude-opus-5-6']) {
      expect(prices.find('anthropic', model, 'messages'), model).toBeUndefined()
    }
    for (const model of ['gpt-6.1-luna', 'gpt-7', 'constructor']) {
      expect(prices.find('openai', model, 'chat'), model).toBeUndefined()
      expect(newerModel(model, model)).toBeUndefined()
    }
  })

  it('have what a write to a cache for half a day costs, searches and sound', async () => {
    const prices = await loadBuiltinPrices()
    const astra = prices.find('openai', 'gpt-6-astra', 'responses')
    expect(astra?.base).toMatchObject({ cache_write_5m: 12_500_000n, cache_write_1h: 25_000_000n })
    expect(astra?.tiers[0]?.prices.cache_write_1h).toBe(50_000_000n)
    expect(astra?.webSearch).toBe(10_000_000)
    expect(prices.find('openai', 'gpt-4o-mini', 'responses')?.webSearch).toBe(25_000_000)
    expect(prices.find('anthropic', 'claude-opus-5-5', 'messages')?.webSearch).toBe(10_000_000)
    expect(prices.find('perplexity', 'sonar-pro', 'chat')?.call).toBe(14_000_000)
    expect(prices.find('google', 'gemini-2.5-flash-image', 'chat')?.base.output).toBe(30_000_000n)
    expect(prices.find('openai', 'gpt-audio-mini', 'chat')?.audio).toEqual({ input: 10_000_000n, output: 20_000_000n })
    expect(prices.find('openai', 'gpt-4o-audio-preview', 'chat')?.audio).toEqual({
      input: 40_000_000n,
      output: 80_000_000n,
    })
  })

  it.each([
    ['claude-opus-5-5', { fast: 200 }],
    ['claude-fable-5-2', { fast: 200 }],
    ['claude-opus-4-7-20260416', { fast: 600 }],
    ['claude-sonnet-5-5', {}],
    ['gpt-5.5-2026-04-23', { priority: 250, flex: 50 }],
    ['gpt-5.4', { priority: 200, flex: 52 }],
    ['gpt-5.4-mini', { priority: 200, flex: 50 }],
    ['gpt-5-mini-2025-08-07', { priority: 180, flex: 50 }],
    ['gpt-6.1-sol', { priority: 200, flex: 50 }],
    ['gpt-4o-2024-05-13', { priority: 175 }],
    ['gpt-4o', { priority: 170 }],
    ['openai/o3-2025-04-16', { priority: 175, flex: 50 }],
    ['o3-mini', {}],
    ['o4-mini', { priority: 182, flex: 51 }],
  ])('the modes of %s are published', (model, rates) => {
    expect(ratesOf(model)).toEqual(rates)
  })

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
    expect(PRICE_TABLE_VERSION.split(' ', 1)[0]).toBe(`${manifest.name}@${manifest.version}`)
  })
})
