import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { adaptiveConformal, type Turn } from './adaptive-conformal.ts'
import { addEvidence, correctEvidence, EVIDENCE_GRID, eprocess, evidentThreshold, NO_EVIDENCE } from './e-process.ts'

const PACE = { alpha: 0.1, gamma: 0.02 }
const BET = { alpha: 0.1, delta: 0.05, bet: 0.5 }
const turn = fc.constantFrom<Turn>('pass', 'fail', undefined)

describe('the adaptive threshold', () => {
  it('rises with a failure, falls with a success, and stays between 0 and 1', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), t => {
        expect(adaptiveConformal(t, undefined, 'fail', PACE)).toBe(Math.min(1, t + 0.02 * 0.9))
        expect(adaptiveConformal(t, undefined, 'pass', PACE)).toBe(Math.max(0, t - 0.02 * 0.1))
        expect(adaptiveConformal(t, 'pass', 'fail', PACE)).toBe(Math.min(1, t + 0.02))
        expect(adaptiveConformal(t, 'fail', 'pass', PACE)).toBe(Math.max(0, t - 0.02))
      }),
    )
  })

  it('ends where it would have ended with the right outcome from the beginning', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 5 }), turn, (words, last) => {
        // Away from the ends, where nothing is cut off.
        let t = 0.5
        let before: Turn
        for (const word of [...words, last]) {
          t = adaptiveConformal(t, before, word, PACE)
          before = word
        }
        expect(t).toBeCloseTo(adaptiveConformal(0.5, undefined, last, PACE), 12)
      }),
    )
  })
})

describe('evidence', () => {
  const sequence = fc.array(fc.record({ score: fc.double({ min: 0, max: 1, noNaN: true }), failed: fc.boolean() }), {
    maxLength: 200,
  })

  it('stays above zero and below its cap, and only thresholds at or below the score learn', () => {
    fc.assert(
      fc.property(sequence, given => {
        let evidence = NO_EVIDENCE
        for (const pair of given) {
          const next = addEvidence(evidence, pair, BET)
          for (const [i, e] of next.entries()) {
            expect(e).toBeGreaterThan(0)
            expect(e).toBeLessThanOrEqual((10 * EVIDENCE_GRID.length) / BET.delta)
            if (pair.score < EVIDENCE_GRID[i]!) expect(e).toBe(evidence[i])
          }
          evidence = next
        }
        expect(eprocess(given, BET).evidence).toEqual(evidence)
      }),
    )
  })

  it('is not expected to grow where the failure rate is alpha', () => {
    const [fail, pass] = [true, false].map(failed => addEvidence(NO_EVIDENCE, { score: 1, failed }, BET)[0]!)
    expect(BET.alpha * fail! + (1 - BET.alpha) * pass!).toBeCloseTo(1, 12)
  })

  it('is corrected to what the right outcome would have given', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean(), fc.boolean(), (score, failed, to) => {
        const said = addEvidence(NO_EVIDENCE, { score, failed }, BET)
        const right = addEvidence(NO_EVIDENCE, { score, failed: to }, BET)
        for (const [i, e] of correctEvidence(said, { score, failed }, to, BET).entries())
          expect(e).toBeCloseTo(right[i]!, 12)
        for (const e of correctEvidence(said, { score, failed }, undefined, BET)) expect(e).toBeCloseTo(1, 12)
      }),
    )
  })

  it('certifies the smallest threshold of a clean run, after about 124 answers', () => {
    const clean = (n: number) => Array.from({ length: n }, () => ({ score: 0.5, failed: false }))
    const first = Array.from({ length: 400 }, (_, n) => n).find(n => eprocess(clean(n), BET).threshold !== undefined)
    expect([first, eprocess(clean(first!), BET).threshold]).toEqual([124, 0])
    expect(evidentThreshold(NO_EVIDENCE, BET)).toBeUndefined()
  })
})
