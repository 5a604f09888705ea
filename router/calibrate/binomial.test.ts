import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { binomialTail, trialsNeeded, upperBound } from './binomial.ts'

/** The tail in whole numbers, p = millis/1000, to 18 digits: nothing is rounded before the end. */
function exactTail(n: number, k: number, millis: number): number {
  if (k < 0) return 0
  const [yes, no] = [BigInt(millis), BigInt(1000 - millis)]
  let term = no ** BigInt(n)
  let sum = term
  for (let i = 1; i <= Math.min(k, n); i++) {
    term = (term * BigInt(n - i + 1) * yes) / (BigInt(i) * no)
    sum += term
  }
  const all = 1000n ** BigInt(n)
  return Number((sum * 10n ** 18n) / all) / 1e18
}

describe('the binomial tail', () => {
  it('is within 1e-12 of the sum in whole numbers', () => {
    const cases = fc
      .tuple(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 999 }), fc.nat(1000))
      .map(([n, millis, share]) => ({ n, millis, k: Math.floor((share / 1000) * n) }))
    let worst = 0
    fc.assert(
      fc.property(cases, ({ n, k, millis }) => {
        const error = Math.abs(binomialTail(n, k, millis / 1000) - exactTail(n, k, millis))
        worst = Math.max(worst, error)
        expect(error).toBeLessThan(1e-12)
      }),
      { numRuns: 400 },
    )
    console.info(`binomial tail: largest error over 400 cases ${worst.toExponential(2)}`)
  })

  it.each([
    [2000, 170, 100],
    [2000, 200, 100],
    [2000, 240, 100],
    [2000, 1, 1],
    [2000, 1000, 500],
  ])('holds for n=%i, k=%i, p=%i/1000', (n, k, millis) => {
    expect(Math.abs(binomialTail(n, k, millis / 1000) - exactTail(n, k, millis))).toBeLessThan(1e-12)
  })

  it('adds up to 1 with the tail of the other side, up to a million trials', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 0.001, max: 0.999, noNaN: true }),
        (n, p) => {
          const k = Math.floor(n * p)
          expect(Math.abs(binomialTail(n, k, p) + binomialTail(n, n - k - 1, 1 - p) - 1)).toBeLessThan(1e-11)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('grows with k and falls with n', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 3000 }), fc.nat(3000), (n, at) => {
        const k = Math.min(at, n - 1)
        expect(binomialTail(n, k, 0.1)).toBeLessThanOrEqual(binomialTail(n, k + 1, 0.1) + 1e-15)
        expect(binomialTail(n + 1, k, 0.1)).toBeLessThanOrEqual(binomialTail(n, k, 0.1) + 1e-15)
      }),
    )
  })

  it('says how many answers a certificate takes', () => {
    expect(trialsNeeded(0, 0.1, 0.05)).toBe(29)
    fc.assert(
      fc.property(fc.nat(60), fc.integer({ min: 10, max: 500 }), (k, millis) => {
        const n = trialsNeeded(k, millis / 1000, 0.05)
        expect(binomialTail(n, k, millis / 1000)).toBeLessThanOrEqual(0.05)
        if (n > k + 1) expect(binomialTail(n - 1, k, millis / 1000)).toBeGreaterThan(0.05)
      }),
    )
  })

  it('has an upper bound that passes alpha just where the tail passes delta', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), fc.nat(1000), (n, share) => {
        const k = Math.floor((share / 1000) * n * 0.3)
        const tail = binomialTail(n, k, 0.1)
        if (Math.abs(tail - 0.05) > 1e-6) expect(upperBound(n, k, 0.05) <= 0.1).toBe(tail <= 0.05)
      }),
    )
  })
})
