import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { silentLog } from '../../shared/log/log.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { scanner } from './scanner.ts'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-01-02T03:04:05Z')

beforeEach(() => void vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

it('counts windows as on time by a clock that is set back to before the start', async () => {
  const clock = manualClock(new Date(START))
  const missedBefore: number[] = []
  const moveByClock = vi.fn(async () => undefined)
  const scan = scanner({
    fire: async ({ missedBeforeMs }) => void missedBefore.push(missedBeforeMs - clock.now().getTime()),
    moveByClock,
    store: { nextDue: async () => undefined, prune: async () => undefined },
    clock,
    log: silentLog(),
  })
  scan.start()
  for (const by of [0, -HOUR_MS, 0]) {
    clock.set(by)
    await vi.advanceTimersByTimeAsync(1000)
    clock.advance(500)
  }
  await scan.stop()
  expect(missedBefore.every(ms => ms <= 0)).toBe(true)
  expect(moveByClock).toHaveBeenCalledOnce()
})

it('looks once a minute for what a process whose clock was ahead has timed', async () => {
  const clock = manualClock(new Date(START))
  const moveByClock = vi.fn(async () => undefined)
  const store = { nextDue: async () => undefined, prune: async () => undefined }
  const scan = scanner({ fire: async () => undefined, moveByClock, store, clock, log: silentLog() })
  scan.start()
  const asked: number[] = []
  for (let minute = 0; minute < 3; minute++) {
    await vi.advanceTimersByTimeAsync(2000)
    asked.push(moveByClock.mock.calls.length)
    clock.advance(60_000)
  }
  await scan.stop()
  // Not at the start: a service has done it before.
  expect(asked).toEqual([0, 1, 2])
})
