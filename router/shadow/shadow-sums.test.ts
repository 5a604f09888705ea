import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { attemptCost, classPrices } from '../../shared/prices/price.ts'
import { calibratedCost, FEWEST, pairOf, shadowSums } from './shadow-sums.ts'

const price = { base: classPrices({ input: 5, output: 25 }, 'messages'), tiers: [] }
const tokens = (uncached: number, output: number) => ({
  uncached,
  cache_write_5m: 0,
  cache_write_1h: 0,
  cache_read: 0,
  output,
})

describe('the calibrated baseline', () => {
  it('is absent below 30 samples, and of one route of one tenant only', () => {
    const book = shadowSums()
    for (let n = 1; n < FEWEST; n++) book.add('a', 'r', pairOf(tokens(10, 10), tokens(20, 5)))
    expect(book.ratios('a', 'r')).toBeUndefined()
    book.add('a', 'r', pairOf(tokens(10, 10), tokens(20, 5)))
    expect(book.ratios('a', 'r')).toEqual({ input: 2, output: 0.5 })
    expect(book.ratios('a', 'other')).toBeUndefined()
    expect(book.ratios('b', 'r')).toBeUndefined()
  })

  it('sums over the samples to what the top rung cost, to the rounding of each', () => {
    const count = fc.integer({ min: 1, max: 50_000 })
    const pairs = fc.array(fc.tuple(count, count, count, count), { minLength: FEWEST, maxLength: 60 })
    fc.assert(
      fc.property(pairs, list => {
        const book = shadowSums()
        for (const [si, so, ti, to] of list) book.add('t', 'r', pairOf(tokens(si, so), tokens(ti, to)))
        const ratios = book.ratios('t', 'r')!
        const calibrated = list.reduce((sum, [si, so]) => sum + calibratedCost(price, tokens(si, so), ratios), 0)
        const real = list.reduce((sum, [, , ti, to]) => sum + attemptCost(price, tokens(ti, to)), 0)
        expect(Math.abs(calibrated - real)).toBeLessThanOrEqual(list.length * 2)
      }),
      { numRuns: 200 },
    )
  })
})
