import fc from 'fast-check'
import { expect, it } from 'vitest'
import { flowOf } from './flow.ts'

const moves = [
  { from: null, to: 0, requests: 48 },
  { from: null, to: 1, requests: 2 },
  { from: 0, to: 0, requests: 3 },
  { from: 0, to: 1, requests: 12 },
  { from: 1, to: 2, requests: 4 },
  { from: 0, to: 2, requests: 1 },
]

it('has a box for each rung, highest on top, and a line for each way between them as wide as its share', () => {
  const { rungs, lines } = flowOf(moves, { 0: 35, 1: 10, 2: 5 })
  expect(rungs.map(({ rung }) => rung)).toEqual([2, 1, 0])
  expect(lines.map(({ words }) => words)).toEqual([
    '48 calls began on rung 0',
    '2 calls began on rung 1',
    '12 answers went on from rung 0 to rung 1',
    '4 answers went on from rung 1 to rung 2',
    '1 answer went on from rung 0 to rung 2',
    '35 calls served from rung 0',
    '10 calls served from rung 1',
    '5 calls served from rung 2',
  ])
  const width = (n: number) => lines.find(({ label }) => label.text === String(n))!.width
  expect(width(12) / width(4)).toBeCloseTo(3)
})

it('keeps every line and label within the picture', () => {
  const rung = fc.nat(5)
  const move = fc.record({ from: fc.option(rung), to: rung, requests: fc.integer({ min: 1, max: 1e6 }) })
  fc.assert(
    fc.property(fc.array(move, { maxLength: 12 }), fc.dictionary(rung.map(String), fc.nat(1e6)), (some, served) => {
      const { width, height, lines } = flowOf(some, served)
      for (const { label, width: wide, path } of lines) {
        expect(label.x).toBeGreaterThanOrEqual(0)
        expect(label.x).toBeLessThanOrEqual(width)
        expect(label.y).toBeGreaterThan(0)
        expect(label.y).toBeLessThan(height)
        expect(wide).toBeLessThanOrEqual(22)
        for (const number of path.match(/-?[\d.]+/g) ?? []) expect(Number(number)).toBeGreaterThanOrEqual(0)
      }
    }),
  )
})
