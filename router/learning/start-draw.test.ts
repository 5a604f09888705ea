import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromUsd } from '../../shared/money/money.ts'
import { configOf } from '../policy/testing/route-of.ts'
import { xoshiro128 } from '../policy/xoshiro128.ts'
import { type Experience, type Lesson, learned, NO_EXPERIENCE } from './experience.ts'
import { type DrawInput, drawBeta, drawStart, expectedCosts } from './start-draw.ts'

const { ladder } = configOf(`
price = [
  { model = "a/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "a/middle", input_per_mtok = 3, output_per_mtok = 15 },
  { model = "a/large", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "a", dialect = "messages", base_url = "http://127.0.0.1:9", auth = "none" }]
[[route]]
mode = "enforce"
ladder = ["a/small", "a/middle", "a/large"]
`).routes[0]!

const tokens = { uncached: 1000, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 200 }
const lesson = (rung: number, passed: boolean, usd = [0.002, 0.006, 0.03][rung]!): Lesson => ({
  rung,
  passed,
  tokens,
  cost: fromUsd(usd),
})
const knowing = (lessons: readonly Lesson[], discount = 1): Experience =>
  lessons.reduce((from, one) => learned(from, one, discount), NO_EXPERIENCE)
const times = (n: number, one: Lesson) => Array.from({ length: n }, () => one)

const uniformOf = (seed: number) => {
  const next = xoshiro128(seed)
  return () => next() / 2 ** 32
}
const input = (over: Partial<DrawInput> & Pick<DrawInput, 'experience'>, seed = 1): DrawInput => ({
  ladder,
  eligible: [0, 1, 2],
  bounds: { least: 0, most: 1 },
  epsilon: 0,
  session: undefined,
  settings: { algorithm: 'thompson', ucbC: 1 },
  uniform: uniformOf(seed),
  ...over,
})

describe('experience', () => {
  it('counts each attempt less with every one that follows', () => {
    const found = knowing([lesson(0, true), lesson(0, false), lesson(1, true)], 0.5)
    expect(found).toMatchObject({ seen: 3, weight: 1.75, tokens: { uncached: 1750, output: 350 } })
    // The counts of a rung fade with the attempts on that rung.
    expect(found.rungs).toEqual([
      { pass: 0.5, fail: 1, cost: 3_000_000 },
      { pass: 1, fail: 0, cost: 6_000_000 },
    ])
  })
})

describe('expected costs', () => {
  it('are those of the climb from each start', () => {
    const found = expectedCosts([0, 1, 2], [0.5, 0.9, 0.2], [1, 3, 15])
    expect([found.get(2), found.get(1), found.get(0)]).toEqual([15, 3 + (1 - 0.9) * 15, 1 + 0.5 * (3 + (1 - 0.9) * 15)])
    expect([...expectedCosts([0, 2], [0.5, 0.9, 0.2], [1, 3, 15])]).toEqual([
      [2, 15],
      [0, 8.5],
    ])
  })
})

describe('a draw from Beta', () => {
  it.each([
    [1, 1],
    [3, 1],
    [1, 40],
    [20, 5],
  ])('has the mean and the spread of Beta(%d, %d)', (a, b) => {
    const uniform = uniformOf(a * 100 + b)
    const draws = Array.from({ length: 20_000 }, () => drawBeta(a, b, uniform))
    const mean = draws.reduce((sum, one) => sum + one, 0) / draws.length
    const variance = draws.reduce((sum, one) => sum + (one - mean) ** 2, 0) / draws.length
    const truth = (a * b) / ((a + b) ** 2 * (a + b + 1))
    expect(draws.every(one => one >= 0 && one <= 1)).toBe(true)
    expect(Math.abs(mean - a / (a + b))).toBeLessThan(5 * Math.sqrt(truth / draws.length))
    expect(Math.abs(variance / truth - 1)).toBeLessThan(0.1)
  })
})

describe('a learned start', () => {
  const failing = knowing([...times(40, lesson(0, false)), ...times(40, lesson(1, true))])
  const passing = knowing([...times(40, lesson(0, true)), ...times(10, lesson(1, true))])

  it('skips a rung that fails, and keeps one that passes', () => {
    expect(drawStart(input({ experience: failing }))).toEqual({ rung: 1, chances: [0, 1, 0], explored: false })
    expect(drawStart(input({ experience: passing }))).toEqual({ rung: 0, chances: [1, 0, 0], explored: false })
    const ucb = { algorithm: 'ucb', ucbC: 0.1 } as const
    expect(drawStart(input({ experience: failing, settings: ucb }))?.chances).toEqual([0, 1, 0])
    expect(drawStart(input({ experience: passing, settings: ucb }))?.chances).toEqual([1, 0, 0])
  })

  it('hopes for the best of what it has seldom tried, as far as it is told to', () => {
    const unsure = knowing([...times(3, lesson(0, false)), ...times(60, lesson(1, true))])
    const ucb = (ucbC: number) => drawStart(input({ experience: unsure, settings: { algorithm: 'ucb', ucbC } }))?.rung
    expect([ucb(0), ucb(2)]).toEqual([1, 0])
    const share = drawStart(input({ experience: knowing([lesson(0, false), lesson(1, true)]) }))!.chances
    expect(share[0]).toBeGreaterThan(0)
    expect(share[1]).toBeGreaterThan(0)
  })

  it('stays within its bounds and what is eligible', () => {
    expect(drawStart(input({ experience: failing, bounds: { least: 0, most: 0 } }))?.chances).toEqual([1, 0, 0])
    expect(drawStart(input({ experience: failing, eligible: [0, 2] }))?.chances).toEqual([1, 0, 0])
    expect(drawStart(input({ experience: failing, eligible: [2] }))).toBeUndefined()
  })

  it('prices a rung that was never tried by the tokens of the others, and says nothing where it cannot', () => {
    const experience = knowing(times(60, lesson(0, false)))
    // The middle rung costs 1000·3 + 200·15 = 0.006 a try; with certain failure below, it is where to start.
    expect(drawStart(input({ experience }))?.rung).toBe(1)
    const unpriced = ladder.map(one => ({ ...one, price: null }))
    expect(drawStart(input({ experience, ladder: unpriced }))).toBeUndefined()
    expect(drawStart(input({ experience: NO_EXPERIENCE }))).toBeUndefined()
  })

  it('counts what a session would read anew on another rung', () => {
    const even = knowing([...times(30, lesson(0, true)), ...times(30, lesson(0, false)), ...times(60, lesson(1, true))])
    expect(drawStart(input({ experience: even }))?.chances[0]).toBeGreaterThan(0.9)
    // 10,000 tokens at 0.9 USD a million more on the small rung than from the middle one's cache.
    const session = { rung: 1, cacheReadTokens: 10_000 }
    expect(drawStart(input({ experience: even, session }))?.chances[1]).toBeGreaterThan(0.9)
  })

  it('logs chances that add up to one, and gives each possible start its share of exploration', () => {
    const lessons = fc.array(fc.record({ rung: fc.nat(2), passed: fc.boolean() }), { minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(
        lessons,
        fc.double({ min: 0, max: 0.5, noNaN: true }),
        fc.constantFrom('thompson' as const, 'ucb' as const),
        fc.nat(),
        (list, epsilon, algorithm, seed) => {
          const experience = knowing(list.map(({ rung, passed }) => lesson(rung, passed)))
          const settings = { algorithm, ucbC: 1 }
          const draw = drawStart(input({ experience, epsilon, settings }, seed))!
          expect(draw.chances.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 12)
          expect(draw.chances[draw.rung]).toBeGreaterThan(0)
          expect(draw.chances[2]).toBe(0)
          for (const rung of [0, 1]) expect(draw.chances[rung]).toBeGreaterThanOrEqual(epsilon / 2 - 1e-12)
          expect(drawStart(input({ experience, epsilon, settings }, seed))).toEqual(draw)
        },
      ),
    )
  })

  it('draws each start as often as it logs: its inverse chances average to one', () => {
    const experience = knowing([
      ...times(6, lesson(0, false)),
      ...times(4, lesson(0, true)),
      ...times(5, lesson(1, true)),
    ])
    const n = 4000
    const sums = [0, 0]
    const squares = [0, 0]
    for (let seed = 0; seed < n; seed++) {
      const { rung, chances } = drawStart(input({ experience, epsilon: 0.2 }, seed * 7919))!
      sums[rung]! += 1 / chances[rung]!
      squares[rung]! += 1 / chances[rung]! ** 2
    }
    for (const rung of [0, 1]) {
      const mean = sums[rung]! / n
      const error = Math.sqrt((squares[rung]! / n - mean ** 2) / n)
      expect(Math.abs(mean - 1)).toBeLessThan(5 * error)
    }
  })
})
