import { expect, it } from 'vitest'
import { restartDelay } from './supervise.ts'

it('a process that ends at once again and again is started ever later, and after a quiet time at once', () => {
  let now = 0
  const delay = restartDelay(() => now)
  expect(Array.from({ length: 10 }, delay.next)).toEqual([0, 50, 100, 200, 400, 800, 1600, 3200, 5000, 5000])
  now = 31_000
  expect(delay.next()).toBe(0)
})
