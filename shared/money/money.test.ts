import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatUsd, fromUsd, MoneyRangeError, nanoFromPico, sumNano, toUsd } from './money.ts'

const amounts = fc.integer({ min: -(10 ** 15), max: 10 ** 15 })

describe('money', () => {
  it('comes back from the wire to the nano-USD', () => {
    fc.assert(
      fc.property(amounts, nano => {
        expect(fromUsd(JSON.parse(JSON.stringify(toUsd(nano))) as number)).toBe(nano)
        expect(fromUsd(Number(formatUsd(nano)))).toBe(nano)
      }),
      { numRuns: 5000 },
    )
  })

  it('prints plain decimals, never an exponent', () => {
    expect([0, 50, 9_200_000, 12_000_000_000, -1_500_000_000].map(formatUsd)).toEqual([
      '0',
      '0.00000005',
      '0.0092',
      '12',
      '-1.5',
    ])
  })

  it('rounds half a nano-USD up, once', () => {
    expect([499n, 500n, 1499n, 1500n].map(nanoFromPico)).toEqual([0, 1, 1, 2])
  })

  it('refuses to leave the range in which whole nano-USD are exact', () => {
    expect(() => fromUsd(1e7)).toThrow(MoneyRangeError)
    expect(() => sumNano([Number.MAX_SAFE_INTEGER, 1])).toThrow(MoneyRangeError)
    expect(() => nanoFromPico(10n ** 20n)).toThrow(MoneyRangeError)
    expect(() => fromUsd(Number.NaN)).toThrow(MoneyRangeError)
  })

  it('sums without a float in between', () => {
    expect(sumNano(Array(10).fill(fromUsd(0.1)))).toBe(fromUsd(1))
  })
})
