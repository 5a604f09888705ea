import fc from 'fast-check'
import { expect, it } from 'vitest'
import { redialDelay } from './redial-delay.ts'

it('waits 1 s, then twice as long each time, up to 60 s', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 100].map(failures => redialDelay(failures, () => 0.5))).toEqual([
    1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000,
  ])
})

it('stays within 20 % of that', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, draw) => {
      const middle = redialDelay(failures, () => 0.5)
      const delay = redialDelay(failures, () => draw)
      expect(delay).toBeGreaterThanOrEqual(middle * 0.8 - 1)
      expect(delay).toBeLessThanOrEqual(middle * 1.2 + 1)
    }),
  )
})
