import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PLAIN_BILLING } from '../../shared/dialects/estimate.ts'
import { answerCost, classPrices, type Price, ratesOf } from '../../shared/prices/price.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { billedBound, requestedBilling } from './requested-billing.ts'

const NOTHING = { rates: [], speaks: false, searches: 0, fees: 0, others: [] }
const priced = (input: number, output: number, name: string): Price => ({
  base: classPrices({ input, output }, 'messages'),
  tiers: [],
  rates: ratesOf(name),
  webSearch: 10_000_000,
})

describe('what a request asks to be billed for', () => {
  it.each([
    ['messages', {}, NOTHING],
    ['messages', { speed: 'standard', inference_geo: 'global', service_tier: 'auto' }, NOTHING],
    ['messages', { speed: 'fast', inference_geo: 'us' }, { ...NOTHING, rates: ['fast', 'us'] }],
    ['messages', { fallbacks: 'default' }, { ...NOTHING, others: [null] }],
    [
      'messages',
      { fallbacks: [{ model: 'a', speed: 'fast' }, { model: 'b' }] },
      { ...NOTHING, rates: ['fast'], others: ['a', 'b'] },
    ],
    [
      'messages',
      {
        tools: [
          { type: 'advisor_20260301', model: 'a', max_uses: 2 },
          { type: 'web_search_20260318', max_uses: 3 },
        ],
      },
      { ...NOTHING, searches: 3, others: ['a', 'a'] },
    ],
    ['messages', { tools: [{ type: 'web_search_20250305' }, { name: 'f' }, null, 7] }, { ...NOTHING, searches: 10 }],
    ['responses', { tools: [{ type: 'file_search' }] }, { ...NOTHING, fees: 25_000_000 }],
    [
      'responses',
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '4g' } }] },
      { ...NOTHING, fees: 120_000_000 },
    ],
    ['responses', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, NOTHING],
    [
      'responses',
      { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
      { ...NOTHING, fees: 30_000_000 },
    ],
    ['responses', { tools: [{ type: 'shell', environment: { type: 'local' } }] }, NOTHING],
    ['chat', { service_tier: 'fast' }, { ...NOTHING, rates: ['priority'] }],
    ['responses', { service_tier: 'ultrafast' }, { ...NOTHING, rates: ['ultrafast'] }],
    ['chat', { speed: 'fast', fallbacks: [{ model: 'a' }] }, NOTHING],
    ['chat', { modalities: ['text', 'audio'] }, { ...NOTHING, speaks: true }],
  ] as const)('is read from a %s request with %j', (dialect, more, asked) => {
    expect(requestedBilling(utf8(JSON.stringify({ model: 'm', ...more })), dialect)).toEqual(asked)
  })

  it('is found however it is spelled, and where it is said twice', () => {
    const body = utf8(String.raw`{"\u0073peed":"f\u0061st","speed":"standard"}`)
    expect(requestedBilling(body, 'messages').rates).toEqual(['fast'])
  })
})

describe('the bound of a call', () => {
  it('looks a model up once, and of a request that names thousands none', () => {
    const price = priced(1, 5, 'a')
    const bound = { input: 1000, output: 1000 }
    const asked = (others: string[]) => ({ rates: [], speaks: false, hears: false, searches: 0, fees: 0, others })
    let looks = 0
    const priceOf = () => {
      looks++
      return price
    }
    const alone = billedBound(price, bound, 'none', asked([]), priceOf)
    expect(billedBound(price, bound, 'none', asked(['a', 'a', 'a']), priceOf)).toBe(4 * alone)
    expect(looks).toBe(1)
    const many = Array.from({ length: 5000 }, (_, at) => `m${at}`)
    expect(billedBound(price, bound, 'none', asked(many), priceOf)).toBe(Number.MAX_SAFE_INTEGER)
    expect(looks).toBe(1)
  })

  it('is never less than an answer costs that does what was asked', () => {
    const models: Readonly<Record<string, Price>> = {
      big: priced(20, 90, 'claude-opus-4-7'),
      small: priced(1, 5, 'claude-haiku-4-5'),
    }
    const own = priced(5, 25, 'claude-opus-5')
    const model = fc.constantFrom('big', 'small')
    const request = fc.record(
      {
        speed: fc.constantFrom('fast', 'standard'),
        inference_geo: fc.constantFrom('us', 'global'),
        fallbacks: fc.array(fc.record({ model }), { maxLength: 2 }),
        tools: fc.array(
          fc.oneof(
            fc.record({ type: fc.constant('advisor_20260301'), model, max_uses: fc.integer({ min: 1, max: 3 }) }),
            fc.record({ type: fc.constant('web_search_20260318'), max_uses: fc.nat(5) }),
          ),
          { maxLength: 2 },
        ),
      },
      { requiredKeys: [] },
    )
    const bound = { input: 1000, output: 100 }
    const tokens = { uncached: 1000, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 100 }
    fc.assert(
      fc.property(request, asks => {
        const asked = requestedBilling(utf8(JSON.stringify(asks)), 'messages')
        const { rates, searches } = asked
        const others = asked.others.map(name => ({ model: name, tokens }))
        const most = billedBound(own, bound, 'none', { ...asked, hears: false }, name => models[name])
        const billing = { ...PLAIN_BILLING, rates, webSearches: searches, others }
        expect(most).toBeGreaterThanOrEqual(answerCost(own, tokens, billing, name => models[name]) ?? 0)
      }),
    )
  })
})
