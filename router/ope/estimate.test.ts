import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { xoshiro128 } from '../policy/xoshiro128.ts'
import { bootstrapMean, type Estimate, estimatePolicy, interval95, resampledSums } from './estimate.ts'
import { type PolicyRow, policyRows } from './policy-rows.ts'

const rowsOf = (list: readonly Partial<PolicyRow>[]) => {
  const rows = policyRows()
  for (const row of list) {
    rows.add({ context: 'x', route: 'r', logged: 'rung 0', target: 'rung 1', propensity: 0.5, value: 0, ...row })
  }
  return rows
}
const values = ({ ips, snips, dr }: ReturnType<typeof estimatePolicy>) => [ips, snips, dr].map(one => one?.value)

describe('the estimators', () => {
  it('give the figures of a sum done by hand', () => {
    const rows = rowsOf([
      { logged: 'rung 1', propensity: 0.5, value: 4 },
      { logged: 'rung 0', propensity: 0.5, value: 1 },
      { logged: 'rung 1', propensity: 0.25, value: 8 },
      { logged: 'rung 0', propensity: 0.75, value: 3 },
    ])
    const found = estimatePolicy(rows, 'cost')
    // w = 2, 0, 4, 0; Σwc = 8 + 32; Σw = 6; m(x, rung 1) = 6, so DR = (24 + 2·(4-6) + 4·(8-6)) / 4.
    expect(values(found)).toEqual([10, 40 / 6, 7])
    expect([found.n, found.ess, found.coverage, found.logged?.value]).toEqual([4, 36 / 20, 0.5, 4])
  })

  it('take the mean of a start from its context, else from its route, else from all', () => {
    const rows = rowsOf([
      { context: 'a', logged: 'rung 1', value: 10, propensity: 1 },
      { context: 'b', logged: 'rung 0', value: 2 },
      { context: 'c', route: 'other', logged: 'rung 0', value: 6 },
    ])
    // a: 10 + 1·(10-10). b has no rung 1 in its context, its route has 10. c's route has none: the mean of all, 6.
    expect(estimatePolicy(rows, 'cost').dr?.value).toBeCloseTo((10 + 10 + 6) / 3, 12)
  })

  it('agree with the log when the target is what was logged', () => {
    const list = [3, 1, 4, 1, 5].map(value => ({ logged: 'rung 1', propensity: 1, value }))
    const found = estimatePolicy(rowsOf(list), 'cost')
    for (const value of values(found)) expect(value).toBeCloseTo(2.8, 12)
    expect([found.ess, found.coverage, found.ips]).toEqual([5, 1, found.logged])
  })

  it('say nothing where no row started as the target does', () => {
    const found = estimatePolicy(rowsOf([{ value: 1 }, { value: 2 }]), 'failure')
    expect([found.ips, found.snips, found.dr, found.ess, found.coverage]).toEqual([null, null, null, 0, 0])
    expect(found.warnings).toContain('the target starts at rung 1, where no logged request started')
    expect(estimatePolicy(rowsOf([]), 'cost')).toMatchObject({ n: 0, logged: null, ips: null, warnings: [] })
  })

  it('are of the rows that could have started as the target does', () => {
    const drawn = Array.from({ length: 40 }, (_, i) => ({ logged: `rung ${i % 2}`, value: i % 2 === 0 ? 1 : 3 }))
    const fixed = Array.from({ length: 60 }, () => ({ logged: 'rung 0', propensity: 1, value: 1 }))
    const { n, ips, snips, dr, logged, coverage } = estimatePolicy(rowsOf([...fixed, ...drawn]), 'cost')
    expect([n, coverage, logged?.value]).toEqual([40, 0.5, 2])
    for (const estimate of [ips, snips, dr]) expect(estimate?.value).toBeCloseTo(3, 12)
    // Those that could start in this way alone are rows of it.
    const same = fixed.map(row => ({ ...row, target: 'rung 0' }))
    expect(estimatePolicy(rowsOf(same), 'cost')).toMatchObject({ n: 60, ips: { value: 1 }, warnings: [] })
    expect(estimatePolicy(rowsOf(fixed), 'cost')).toMatchObject({ n: 60, ips: null, logged: { value: 1 } })
  })

  it('warn of few rows, of heavy rows and of certain starts, and of nothing where all is well', () => {
    const good = Array.from({ length: 100 }, (_, i) => ({ logged: i % 2 ? 'rung 1' : 'rung 0', value: i }))
    expect(estimatePolicy(rowsOf(good), 'cost').warnings).toEqual([])
    const few = estimatePolicy(rowsOf(good.slice(0, 20)), 'cost').warnings
    expect(few).toEqual([expect.stringMatching(/^the weighted rows are worth 10\.0 /)])
    const heavy = estimatePolicy(rowsOf([...good, { logged: 'rung 1', propensity: 0.01, value: 1 }]), 'cost').warnings
    expect(heavy).toContainEqual(expect.stringMatching(/^one row stands for 100\.0 /))
    const certain = estimatePolicy(rowsOf([...good, { propensity: 1 }]), 'cost').warnings
    expect(certain).toEqual([expect.stringMatching(/^1 of 101 rows had one possible start .* left out/)])
  })

  it('know that few rows without a failure prove no rate of zero, and many little more than that', () => {
    const clean = (n: number) =>
      estimatePolicy(rowsOf(Array.from({ length: n }, () => ({ logged: 'rung 1', propensity: 1 }))), 'failure')
    for (const n of [10, 400]) {
      const { logged, ips, snips, dr } = clean(n)
      // The exact interval of n answers of which none failed.
      for (const one of [logged, ips, snips, dr]) expect(one?.ci).toEqual([0, expect.closeTo(1 - 0.025 ** (1 / n), 12)])
    }
    const failed = Array.from({ length: 10 }, () => ({ logged: 'rung 1', propensity: 1, value: 1 }))
    expect(estimatePolicy(rowsOf(failed), 'failure').snips?.ci).toEqual([expect.closeTo(0.6915, 4), 1])
    // Costs that are all the same are known exactly.
    expect(estimatePolicy(rowsOf(failed), 'cost').snips?.ci).toEqual([1, 1])
  })

  it('give the same intervals for the same rows', () => {
    const list = Array.from({ length: 50 }, (_, i) => ({ logged: i % 2 ? 'rung 1' : 'rung 0', value: (i * 7) % 11 }))
    expect(estimatePolicy(rowsOf(list), 'cost')).toEqual(estimatePolicy(rowsOf(list), 'cost'))
    const cost = estimatePolicy(rowsOf(list), 'cost')
    expect(estimatePolicy(rowsOf(list), 'failure').ips?.ci).not.toEqual(cost.ips?.ci)
    expect(estimatePolicy(rowsOf(list), 'failure').dr).toEqual(cost.dr)
  })
})

describe('the bootstrap', () => {
  it('draws rows and cuts the percentiles as the contract says', () => {
    const next = xoshiro128(42)
    const rows = [5, 7, 11]
    const drawn = Array.from({ length: 6 }, () => rows[Math.floor((next() / 2 ** 32) * 3)]!)
    const [sums] = resampledSums([Float64Array.from(rows)], 2, 42)
    expect([...sums!]).toEqual([drawn[0]! + drawn[1]! + drawn[2]!, drawn[3]! + drawn[4]! + drawn[5]!])
    expect(interval95(Array.from({ length: 1000 }, (_, i) => 999 - i))).toEqual([25, 974])
    expect(interval95([Number.NaN, 2, 1])).toEqual([1, 2])
  })

  it('is never wider than the values, and has no width where they are equal', () => {
    const value = fc.double({ min: -1e3, max: 1e3, noNaN: true })
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 30 }), list => {
        const [low, high] = bootstrapMean(list, 50, 42)
        expect(low <= high).toBe(true)
        expect(low >= Math.min(...list) - 1e-9 && high <= Math.max(...list) + 1e-9).toBe(true)
      }),
    )
    expect(bootstrapMean([2, 2, 2], 50, 1)).toEqual([2, 2])
  })
})

/** Requests of two kinds, each with a cost and a failure rate for either start, logged by a policy that knows its chances. */
interface World {
  seed: number
  /** Of each kind: how often it comes, the chance that it starts on rung 1, and what each start costs and risks. */
  kinds: { share: number; chance: number; cost: [number, number]; risk: [number, number] }[]
}

const share = fc.double({ min: 0.1, max: 0.9, noNaN: true })
const pair = fc.tuple(share, share)
const world: fc.Arbitrary<World> = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 31 }),
  kinds: fc.array(
    fc.record({ share, chance: fc.double({ min: 0.05, max: 0.95, noNaN: true }), cost: pair, risk: pair }),
    {
      minLength: 2,
      maxLength: 4,
    },
  ),
})

const N = 2000

function logOf({ seed, kinds }: World, metric: 'cost' | 'failure') {
  const next = xoshiro128(seed)
  const chance = () => next() / 2 ** 32
  const whole = kinds.reduce((sum, kind) => sum + kind.share, 0)
  const rows = policyRows()
  for (let i = 0; i < N; i++) {
    const at = chance() * whole
    const kind =
      kinds.find((_, k) => kinds.slice(0, k + 1).reduce((sum, one) => sum + one.share, 0) > at) ?? kinds.at(-1)!
    const started = chance() < kind.chance ? 1 : 0
    const value = metric === 'cost' ? kind.cost[started] * (0.5 + chance()) : chance() < kind.risk[started] ? 1 : 0
    rows.add({
      context: String(kinds.indexOf(kind)),
      route: 'r',
      logged: `rung ${started}`,
      target: 'rung 1',
      propensity: started === 1 ? kind.chance : 1 - kind.chance,
      value,
    })
  }
  const truth = kinds.reduce(
    (sum, kind) => sum + (kind.share / whole) * (metric === 'cost' ? kind.cost : kind.risk)[1],
    0,
  )
  return { rows, truth }
}

describe('a logging policy whose truth is known', () => {
  it.each(['cost', 'failure'] as const)('is recovered by every estimator within its error: %s', metric => {
    fc.assert(
      fc.property(world, given => {
        const { rows, truth } = logOf(given, metric)
        const found = estimatePolicy(rows, metric, 200)
        for (const one of [found.ips, found.snips, found.dr]) expect(errors(one!, truth)).toBeLessThan(6)
      }),
      { numRuns: 60, seed: 7 },
    )
  })

  it('lies in the interval about as often as the interval says, and the log alone would miss it', () => {
    const given: World = {
      seed: 0,
      kinds: [
        { share: 0.5, chance: 0.1, cost: [0.2, 0.9], risk: [0.5, 0.1] },
        { share: 0.5, chance: 0.8, cost: [0.1, 0.3], risk: [0.2, 0.1] },
      ],
    }
    const held = { ips: 0, snips: 0, dr: 0, logged: 0 }
    const runs = 100
    for (let seed = 1; seed <= runs; seed++) {
      const { rows, truth } = logOf({ ...given, seed }, 'cost')
      const found = estimatePolicy(rows, 'cost', 200)
      for (const name of ['ips', 'snips', 'dr', 'logged'] as const) {
        const [low, high] = found[name]!.ci
        if (low <= truth && truth <= high) held[name] += 1
      }
    }
    // 95 of 100 are expected; fewer than 86 come by chance once in ten thousand times.
    expect(Math.min(held.ips, held.snips, held.dr)).toBeGreaterThan(85)
    expect(held.logged).toBe(0)
  })
})

/** How many standard errors lie between an estimate and the truth; the interval spans about four. */
const errors = ({ value, ci: [low, high] }: Estimate, truth: number) =>
  Math.abs(value - truth) / Math.max((high - low) / 3.92, 1e-9)
