import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PEER_SKEW_MS, replayGuard } from './peer-route.ts'

const START = 1_000_000
const salt = (n: number) => new Uint8Array([n >> 8, n & 255])

it('lets a request through once, and never one that is late, early or older than the process', () => {
  const visits = fc.array(
    fc.record({
      name: fc.integer({ min: 0, max: 20 }),
      waitMs: fc.integer({ min: 0, max: 40_000 }),
      offMs: fc.integer({ min: -50_000, max: 50_000 }),
    }),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(visits, list => {
      const freshness = replayGuard(START)
      /** What was let through: the very request may come again at any time. */
      const through = new Map<number, number>()
      let nowMs = START
      for (const { name, waitMs, offMs } of list) {
        nowMs += waitMs
        const known = through.get(name)
        if (known !== undefined) {
          expect(freshness(salt(name), known, nowMs)).not.toBe('fresh')
          continue
        }
        const atMs = nowMs + offMs
        const inTime = Math.abs(offMs) <= PEER_SKEW_MS && atMs >= START
        expect(freshness(salt(name), atMs, nowMs)).toBe(inTime ? 'fresh' : 'late')
        if (inTime) through.set(name, atMs)
      }
    }),
  )
})

it('refuses what it could not remember', () => {
  const freshness = replayGuard(START, 2)
  expect([1, 2, 3].map(n => freshness(salt(n), START, START))).toEqual(['fresh', 'fresh', 'too_many'])
  const later = START + 2 * PEER_SKEW_MS + 1
  expect(freshness(salt(3), later, later)).toBe('fresh')
})
