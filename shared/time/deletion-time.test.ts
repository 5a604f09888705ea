import { expect, it } from 'vitest'
import { deletionTime } from './clock.ts'
import { manualClock } from './testing/manual-clock.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.parse('2026-01-02T03:04:05Z')

function made(newestMs?: number) {
  const clock = manualClock(new Date(START))
  const jumps: unknown[] = []
  const log = { warn: (_: string, { to }: { to?: unknown } = {}) => void jumps.push(to) }
  return { clock, jumps, now: deletionTime({ clock, newestMs: async () => newestMs, log }) }
}

it('is what the clock says, also where it is set back, or ahead by a day', async () => {
  const { clock, jumps, now } = made()
  for (const by of [DAY, -400 * DAY, DAY]) {
    clock.advance(HOUR)
    clock.set(by)
    expect(await now()).toBe(clock.now().getTime())
  }
  expect(jumps).toEqual([])
})

it('goes on from where it was while a clock that jumped ahead may be set back', async () => {
  const { clock, jumps, now } = made()
  clock.set(365 * DAY)
  for (let minutes = 0; minutes < 59; minutes++) {
    expect(await now()).toBe(START + minutes * 60_000)
    clock.advance(60_000)
  }
  clock.set(-365 * DAY)
  expect(await now()).toBe(clock.now().getTime())
  clock.set(365 * DAY)
  expect(await now()).toBe(clock.now().getTime() - 365 * DAY)
  clock.advance(HOUR)
  expect(await now()).toBe(clock.now().getTime())
  expect(jumps).toHaveLength(2)
})

it('begins with what is kept, where the clock was wrong at the start', async () => {
  const { clock, jumps, now } = made(START - 365 * DAY)
  expect(await now()).toBe(START - 365 * DAY)
  clock.advance(HOUR)
  expect(await now()).toBe(clock.now().getTime())
  expect(jumps).toEqual([new Date(START)])
  const later = made(START + DAY)
  expect(await later.now()).toBe(START)
})
