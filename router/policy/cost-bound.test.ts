import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { attemptCost, classPrices, inputTokens, type Price } from '../../shared/prices/price.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { boundFactors, cacheWritesOf, costBound, tokenBound } from './cost-bound.ts'
import { configOf } from './testing/route-of.ts'

const price: Price = {
  base: classPrices({ input: 3, output: 15 }, 'messages'),
  tiers: [{ aboveInputTokens: 1000, prices: classPrices({ input: 6, output: 10 }, 'messages') }],
}
const size = { bodyBytes: 1001, mediaBytes: 0, documentBytes: 0, mediaCount: 0, maxTokens: 100, n: 1 }

describe('costBound', () => {
  it('prices every input token at the dearest class and every output token of every choice', () => {
    const bound = tokenBound({ ...size, n: 2 }, boundFactors())
    expect(bound).toEqual({ input: 501, output: 200 })
    // 501 × 6 (a one-hour cache write costs twice the input) + 200 × 15, in USD per million.
    expect(toUsd(costBound(price, bound))).toBe(0.006006)
  })

  it('counts media by the piece and their bytes not at all', () => {
    const bound = tokenBound({ ...size, bodyBytes: 1_000_100, mediaBytes: 1_000_000, mediaCount: 2 }, boundFactors())
    expect(bound.input).toBe(50 + 10_000)
  })

  it('counts a document by its bytes too, since it may have any number of pages, and at most what a model reads', () => {
    const media = { mediaBytes: 1_000_000, documentBytes: 1_000_000, mediaCount: 1 }
    const large = { ...size, ...media, bodyBytes: 1_000_100 }
    expect(tokenBound(large, boundFactors()).input).toBe(50 + 500_000 + 5000)
    expect(tokenBound(large, boundFactors(), 200_000).input).toBe(50 + 200_000 + 5000)
    const huge = { ...large, bodyBytes: 30_000_100, mediaBytes: 30_000_000, documentBytes: 30_000_000 }
    expect(tokenBound(huge, boundFactors()).input).toBe(50 + 1_000_000 + 5000)
  })

  it('is never less than what a call within its tokens costs', () => {
    const count = fc.nat(2000)
    fc.assert(
      fc.property(count, count, count, count, count, fc.nat(500), (uncached, w5, w1, read, output, slack) => {
        const tokens = { uncached, cache_write_5m: w5, cache_write_1h: w1, cache_read: read, output }
        const bound = { input: inputTokens(tokens) + slack, output: output + slack }
        expect(costBound(price, bound)).toBeGreaterThanOrEqual(attemptCost(price, tokens))
      }),
    )
  })

  it('is never less than what a body can be billed for, and no dearer than the cache writes that it asks for', () => {
    const mark = fc.constantFrom(
      ...['', '{"cache_control":{"type":"ephemeral"}}', '{"cache_control":{"type":"ephemeral","ttl":"5m"}}'],
      ...['{"cache_control":{"ttl":"1h","type":"ephemeral"}}', '{"cache\\u005fcontrol":{"ttl":"\\u0031h"}}'],
      '{"text":"no cache here, and 1h of work"}',
    )
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(
        fc.array(mark, { maxLength: 4 }),
        fc.array(share, { minLength: 4, maxLength: 4 }),
        fc.nat(3000),
        (marks, shares, more) => {
          const text = `{"messages":[${marks.filter(Boolean).join(',')}],"pad":"${'x'.repeat(more)}"}`
          const body = utf8(text)
          const asked = JSON.stringify(readJson(text))
          const may = { w5: asked.includes('"cache_control"'), w1: asked.includes('"ttl":"1h"') }
          const whole = tokenBound({ ...size, bodyBytes: body.length }, boundFactors())
          // As a provider may count: all of the bound, in whatever classes the body can have.
          const weights = [1, may.w5 ? 1 : 0, may.w1 ? 1 : 0, 1].map((allowed, i) => allowed * shares[i]!)
          const sum = weights.reduce((all, one) => all + one, 0) || 1
          const [uncached, w5, w1, read] = weights.map(weight => Math.floor((weight / sum) * whole.input))
          const tokens = {
            uncached: uncached!,
            cache_write_5m: w5!,
            cache_write_1h: w1!,
            cache_read: read!,
            output: 100,
          }
          expect(costBound(price, whole, cacheWritesOf(body, 'messages'))).toBeGreaterThanOrEqual(
            attemptCost(price, tokens),
          )
        },
      ),
    )
    expect(cacheWritesOf(utf8('{"a":"b"}'), 'messages')).toBe('none')
    expect(cacheWritesOf(utf8('{"cache_control":{"type":"ephemeral"}}'), 'messages')).toBe('5m')
    expect(cacheWritesOf(utf8('{"cache_control":{"ttl": "1h"}}'), 'messages')).toBe('1h')
    expect(cacheWritesOf(utf8('{"a":"b"}'), 'chat')).toBe('5m')
    expect(cacheWritesOf(utf8('{"prompt_cache_options":{"ttl":"12h"}}'), 'responses')).toBe('1h')
    expect(cacheWritesOf(utf8('{"prompt_cache_options":{"ttl":"\\u00312h"}}'), 'chat')).toBe('1h')
  })

  it('lets a large turn of a cheap model through a cap of half a dollar', () => {
    const haiku: Price = { base: classPrices({ input: 1, output: 5 }, 'messages'), tiers: [] }
    const turn = { ...size, bodyBytes: 480_000, maxTokens: 32_000 }
    expect(toUsd(costBound(haiku, tokenBound(turn, boundFactors()), 'none'))).toBe(0.4)
    expect(toUsd(costBound(haiku, tokenBound(turn, boundFactors()), '5m'))).toBe(0.46)
  })

  it('is more than any budget when the client asks for more than money can count', () => {
    const bound = tokenBound({ ...size, maxTokens: 1e300, n: 8 }, boundFactors())
    expect(costBound(price, bound)).toBe(Number.MAX_SAFE_INTEGER)
  })
})

describe('boundFactors', () => {
  it('takes the nearest table that names a factor', () => {
    const config = configOf(`budget = { tokens_per_byte = 0.25, media_token_bound = 7 }
[tenant.acme.budget]
tokens_per_byte = 1
[[route]]
budget = { media_token_bound = 9 }
`)
    const { budget } = config.routes[0]!
    expect(boundFactors(config.tenants.acme, budget)).toEqual({ tokensPerByte: 1, mediaTokenBound: 9 })
    expect(boundFactors(config.tenants.other, budget)).toEqual({ tokensPerByte: 0.25, mediaTokenBound: 9 })
    expect(boundFactors()).toEqual({ tokensPerByte: 0.5, mediaTokenBound: 5000 })
  })
})
