import { expect, it } from 'vitest'
import { setBacks } from './clock.ts'
import { manualClock } from './testing/manual-clock.ts'

it('says once that the wall clock was set back, and nothing of time that passes or of a jump ahead', () => {
  const clock = manualClock()
  const wasSetBack = setBacks(clock)
  expect(wasSetBack()).toBe(false)
  clock.advance(60_000)
  clock.set(-900)
  expect(wasSetBack()).toBe(false)
  clock.set(3_600_000)
  expect(wasSetBack()).toBe(false)
  clock.advance(1000)
  clock.set(-3_600_000)
  expect([wasSetBack(), wasSetBack()]).toEqual([true, false])
})
