import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideWindows, MOST_MISSED, type ScheduleState } from './decide-windows.ts'
import { windowsUpTo } from './windows.ts'

const EVERY = 10_000
const every =
  (ms: number, until = Number.POSITIVE_INFINITY) =>
  (afterMs: number) => {
    const next = (Math.floor(afterMs / ms) + 1) * ms
    return next > until ? undefined : next
  }

function standing(policy: Partial<ScheduleState['policy']>, more: Partial<ScheduleState> = {}): ScheduleState {
  return {
    policy: { overlap: 'allow', catchUp: 'one', catchUpLimit: 10, ...policy },
    isRunning: false,
    pendingMs: null,
    ...more,
  }
}

const fates = (given: ScheduleState, missed: number[], onTime: number[]) =>
  decideWindows(given, { missed, onTime }).windows.map(({ windowMs, outcome, reason }) =>
    [windowMs, outcome, ...(reason ? [reason] : [])].join(' '),
  )

describe('windows that nobody was there for', () => {
  const down = [1, 2, 3]

  it('start one run, none, or all of them, by policy', () => {
    expect(fates(standing({ catchUp: 'one' }), down, [4])).toEqual([
      '1 skipped missed',
      '2 skipped missed',
      '3 started caught_up',
      '4 started',
    ])
    expect(fates(standing({ catchUp: 'none' }), down, [4])).toEqual([
      '1 skipped missed',
      '2 skipped missed',
      '3 skipped missed',
      '4 started',
    ])
    expect(fates(standing({ catchUp: 'all' }), down, [])).toEqual([1, 2, 3].map(at => `${at} started caught_up`))
  })

  it('keep the newest up to the limit, oldest first', () => {
    expect(fates(standing({ catchUp: 'all', catchUpLimit: 2 }), down, [])).toEqual([
      '1 skipped missed',
      '2 started caught_up',
      '3 started caught_up',
    ])
  })

  it('are found without walking through the time between, however long it was', () => {
    let asked = 0
    const second = every(1000)
    const next = (after: number) => {
      asked++
      return second(after)
    }
    const year = 365 * 86_400_000
    const found = windowsUpTo(next, { dueMs: 1000, nowMs: year + 5000, missedBeforeMs: year, most: MOST_MISSED })
    expect(found.missed).toEqual(Array.from({ length: 100 }, (_, at) => year - 100_000 + at * 1000))
    expect(found.onTime).toEqual([0, 1, 2, 3, 4, 5].map(at => year + at * 1000))
    expect(found.next).toBe(year + 6000)
    expect(asked).toBeLessThan(400)
  })

  it('and those of now are all there are, each in one of the two lists', () => {
    const some = fc.integer({ min: 1, max: 400 })
    fc.assert(
      fc.property(some, some, some, (due, away, late) => {
        const [dueMs, nowMs] = [due * EVERY, (due + away) * EVERY + late * 37]
        const missedBeforeMs = nowMs - late * 100
        const { missed, onTime, next } = windowsUpTo(every(EVERY), { dueMs, nowMs, missedBeforeMs, most: 1000 })
        const all = Array.from({ length: Math.floor(nowMs / EVERY) - due + 1 }, (_, at) => (due + at) * EVERY)
        expect([...missed, ...onTime]).toEqual(all)
        expect(missed.every(at => at < missedBeforeMs) && onTime.every(at => at >= missedBeforeMs)).toBe(true)
        expect(next).toBe(Math.floor(nowMs / EVERY) * EVERY + EVERY)
      }),
    )
  })

  it('end where the expression does', () => {
    expect(
      windowsUpTo(every(EVERY, 2 * EVERY), { dueMs: EVERY, nowMs: 10 * EVERY, missedBeforeMs: 0, most: 5 }),
    ).toEqual({
      missed: [],
      onTime: [EVERY, 2 * EVERY],
      next: undefined,
    })
  })
})

describe('a window whose predecessor is still running', () => {
  it('starts all the same, is skipped, or waits, by policy', () => {
    expect(fates(standing({ overlap: 'allow' }, { isRunning: true }), [], [1])).toEqual(['1 started'])
    expect(fates(standing({ overlap: 'skip' }, { isRunning: true }), [], [1])).toEqual(['1 skipped overlap'])
    expect(decideWindows(standing({ overlap: 'queue' }, { isRunning: true }), { missed: [], onTime: [1, 2] })).toEqual({
      released: undefined,
      windows: [
        { windowMs: 1, outcome: 'queued' },
        { windowMs: 2, outcome: 'skipped', reason: 'queue_full' },
      ],
      pendingMs: 1,
    })
  })

  it('is also one that was started a moment ago', () => {
    expect(fates(standing({ overlap: 'skip', catchUp: 'all' }), [1, 2], [3])).toEqual([
      '1 started caught_up',
      '2 skipped overlap',
      '3 skipped overlap',
    ])
  })

  it('comes after the one that waited', () => {
    const given = standing({ overlap: 'queue' }, { pendingMs: 5 })
    expect(decideWindows(given, { missed: [], onTime: [9] })).toEqual({
      released: 5,
      windows: [{ windowMs: 9, outcome: 'queued' }],
      pendingMs: 9,
    })
    expect(decideWindows({ ...given, isRunning: true }, { missed: [], onTime: [] })).toEqual({
      released: undefined,
      windows: [],
      pendingMs: 5,
    })
  })
})
