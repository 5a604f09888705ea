import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { binomialTail } from './binomial.ts'
import {
  answersNeeded,
  certifyThreshold,
  conformal,
  lttCertificate,
  type Pair,
  tieGroups,
} from './certify-threshold.ts'

const CLAIM = { alpha: 0.1, delta: 0.05, minN: 30 }
const score = fc.constantFrom(0, 0.25, 0.5, 0.75, 0.9, 1)
const pairs = fc.array(fc.record({ score, failed: fc.integer({ min: 0, max: 19 }).map(one => one === 0) }), {
  maxLength: 600,
})
const many = (n: number, failures: number, at = 1): Pair[] =>
  Array.from({ length: n }, (_, i) => ({ score: at, failed: i < failures }))

describe('groups of equal scores', () => {
  it('enter whole, whatever the order of the answers', () => {
    fc.assert(
      fc.property(pairs, fc.integer(), (given, seed) => {
        const groups = tieGroups(given)
        const shuffled = [...given].sort((a, b) => Math.sin(seed + a.score * 7) - Math.sin(seed + b.score * 7))
        expect(tieGroups(shuffled)).toEqual(groups)
        for (const { lambda, n, failures } of groups) {
          const above = given.filter(one => one.score >= lambda)
          expect([n, failures]).toEqual([above.length, above.filter(one => one.failed).length])
        }
        expect(groups.map(({ lambda }) => lambda)).toEqual(
          [...new Set(given.map(one => one.score))].sort((a, b) => b - a),
        )
      }),
    )
  })

  it('take minus zero for zero', () => {
    expect(tieGroups([...many(1, 0, 0), ...many(1, 1, -0)])).toEqual([{ lambda: 0, n: 2, failures: 1 }])
  })
})

describe('the walk', () => {
  it('certifies the last group before the first that fails, and no group beyond', () => {
    fc.assert(
      fc.property(pairs, fc.constantFrom(certifyThreshold, conformal), (given, method) => {
        const groups = tieGroups(given)
        const { tested, passed, failed } = method(groups, CLAIM)
        const holds = (one: (typeof tested)[number]) =>
          method === certifyThreshold ? one.p <= CLAIM.delta : one.ucb <= CLAIM.alpha
        const stop = tested.findIndex(one => one.n >= CLAIM.minN && !holds(one))
        expect(failed).toBe(stop < 0 ? undefined : tested[stop])
        const before = (stop < 0 ? tested : tested.slice(0, stop)).filter(({ n }) => n >= CLAIM.minN)
        expect(passed).toBe(before.at(-1))
        for (const one of tested) expect(one.p).toBe(binomialTail(one.n, one.failures, CLAIM.alpha))
      }),
    )
  })

  it('gives the same certificate without the table', () => {
    fc.assert(
      fc.property(pairs, given => {
        const { passed, failed } = certifyThreshold(tieGroups(given), CLAIM)
        const short = lttCertificate(tieGroups(given), CLAIM)
        expect([short.passed?.lambda, short.passed?.p, short.failed?.lambda]).toEqual([
          passed?.lambda,
          passed?.p,
          failed?.lambda,
        ])
      }),
    )
  })

  it('certifies 30 clean answers by the exact test, and 150 by Hoeffding', () => {
    const of = (n: number, method: typeof certifyThreshold) => method(tieGroups(many(n, 0)), CLAIM).passed?.n
    expect([of(29, certifyThreshold), of(30, certifyThreshold), of(149, conformal), of(150, conformal)]).toEqual([
      undefined,
      30,
      undefined,
      150,
    ])
    expect([answersNeeded('ltt', 0, { ...CLAIM, minN: 1 }), answersNeeded('conformal', 0, CLAIM)]).toEqual([29, 150])
  })

  it('asks for just as many answers as it takes', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.constantFrom('ltt', 'conformal'), (failures, name) => {
        const need = answersNeeded(name, failures, { ...CLAIM, minN: 1 })
        const method = name === 'ltt' ? certifyThreshold : conformal
        const passes = (n: number) => method(tieGroups(many(n, failures)), { ...CLAIM, minN: 1 }).passed !== undefined
        expect([passes(need), passes(need - 1)]).toEqual([true, false])
      }),
    )
  })
})
