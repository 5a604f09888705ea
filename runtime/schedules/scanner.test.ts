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
