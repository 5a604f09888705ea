import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ApiError } from '../../shared/http/api-error.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { throttle } from './throttle.ts'

function refusal(work: () => void): ApiError | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

it('lets ten tries pass, refuses the eleventh and says when to come back', () => {
  const clock = manualClock()
  const door = throttle({ tries: 10, windowMs: 60_000, monotonic: clock.monotonic })
  for (let i = 0; i < 10; i++) {
    door.take('a')
    clock.advance(1000)
  }
  const refused = refusal(() => door.take('a'))
  expect([refused?.code, refused?.headers['retry-after']]).toEqual(['throttled', '50'])
  expect(refusal(() => door.take('b'))).toBeUndefined()
  clock.advance(49_999)
  expect(refusal(() => door.take('a'))).toBeDefined()
  clock.advance(1)
  expect(refusal(() => door.take('a'))).toBeUndefined()
})

it('refuses when either name is used up, and then counts for neither', () => {
  const clock = manualClock()
  const door = throttle({ tries: 2, windowMs: 1000, monotonic: clock.monotonic })
  door.take('address', 'x')
  door.take('address', 'y')
  expect(refusal(() => door.take('address', 'z'))).toBeDefined()
  door.take('elsewhere', 'z')
  door.take('elsewhere2', 'z')
  expect(refusal(() => door.take('elsewhere3', 'z'))).toBeDefined()
})

it('never lets more than its number pass in any window', () => {
  const steps = fc.array(fc.tuple(fc.nat(400), fc.constantFrom('a', 'b')), { maxLength: 60 })
  fc.assert(
    fc.property(steps, taken => {
      const clock = manualClock()
      const door = throttle({ tries: 3, windowMs: 1000, monotonic: clock.monotonic })
      const passed: Record<string, number[]> = { a: [], b: [] }
      for (const [wait, name] of taken) {
        clock.advance(wait)
        if (refusal(() => door.take(name)) === undefined) passed[name]!.push(clock.monotonic())
      }
      for (const times of Object.values(passed)) {
        for (const at of times) {
          expect(times.filter(other => other >= at && other - at < 1000).length).toBeLessThanOrEqual(3)
        }
      }
    }),
  )
})

it('forgets the name that tried longest ago when there are too many', () => {
  const door = throttle({ tries: 1, windowMs: 1000, monotonic: () => 0, names: 2 })
  for (const name of ['a', 'b', 'c']) door.take(name)
  expect(refusal(() => door.take('c'))).toBeDefined()
  expect(refusal(() => door.take('a'))).toBeUndefined()
})

it('of throttles that note the tries of each other all together pass as many as one, and a try that is refused is not passed on', () => {
  const clock = manualClock()
  const doors: ReturnType<typeof throttle>[] = []
  for (let own = 0; own < 3; own++) {
    const counted = (of: readonly string[]) => {
      for (const [at, door] of doors.entries()) if (at !== own) door.note(...of)
    }
    doors.push(throttle({ tries: 5, windowMs: 1000, monotonic: clock.monotonic, counted }))
  }
  const passed = Array.from({ length: 12 }, (_, at) => doors[at % 3]!.hasTaken('a', `address ${at}`))
  expect(passed.filter(Boolean)).toHaveLength(5)
  clock.advance(1001)
  expect(doors.map(door => door.hasTaken('a'))).toEqual([true, true, true])
})
