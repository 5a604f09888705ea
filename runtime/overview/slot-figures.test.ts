import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type EndedGroup, partsOf, percentile } from './slot-figures.ts'

/** As the statement of the store cuts it. */
function cut(ms: number): number {
  let width = 1
  for (let left = ms; left >= 100; left = Math.floor(left / 10)) width *= 10
  return ms - (ms % width)
}

const durationsOf = (all: readonly number[]) => ({
  durations: new Map([...Map.groupBy(all, cut)].map(([bucket, list]) => [bucket, list.length])),
})

it('a percentile over any slots is within 5 % of the exact one, and null of nothing', () => {
  expect(percentile([{ durations: new Map() }], 0.5)).toBe(null)
  const times = fc.array(fc.integer({ min: 0, max: 9_999_999 }), { maxLength: 40 })
  fc.assert(
    fc.property(fc.array(times, { minLength: 1, maxLength: 5 }), fc.constantFrom(0.5, 0.95), (slots, part) => {
      const sorted = slots.flat().toSorted((a, b) => a - b)
      const found = percentile(slots.map(durationsOf), part)
      if (sorted.length === 0) return found === null
      const exact = sorted[Math.ceil(sorted.length * part) - 1]!
      return found !== null && Math.abs(found - exact) <= exact * 0.05
    }),
  )
})

it('parts and what they leave over have together what all groups have, in each slot', () => {
  const group = fc.record({
    agentName: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    model: fc.constant(null),
    status: fc.constantFrom('succeeded' as const, 'failed' as const, 'cancelled' as const),
    code: fc.constant(null),
    runs: fc.integer({ min: 1, max: 9 }),
    costNano: fc.nat(1000),
  })
  const slots = fc.array(fc.array(group, { maxLength: 6 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(slots, fc.integer({ min: 1, max: 6 }), (found, most) => {
      const figures = found.map((groups: EndedGroup[]) => ({ groups, durations: new Map() }))
      const parts = partsOf(figures, ({ agentName }) => agentName, most)
      expect(parts.length).toBeLessThanOrEqual(most)
      found.forEach((groups, slot) => {
        const sum = groups.reduce((total, { costNano }) => total + costNano, 0)
        expect(parts.reduce((total, { costs }) => total + costs[slot]!, 0)).toBe(sum)
      })
      const runs = found.flat().reduce((total, one) => total + one.runs, 0)
      expect(parts.reduce((total, one) => total + one.succeeded + one.failed + one.cancelled, 0)).toBe(runs)
    }),
  )
})
