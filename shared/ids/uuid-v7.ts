import type { Clock } from '../time/clock.ts'

/**
 * A UUID version 7 (RFC 9562 §5.7): 48 bits of milliseconds, then 74 random bits. Ordered by time for the index;
 * the random part is never reduced to a counter, because ids of other tenants must not be guessable.
 */
export function uuidv7(nowMs: number = Date.now()): string {
  if (used + RANDOM_BYTES > pool.length) {
    // Drawn in one call for many ids: a call costs as much as the rest of this function.
    crypto.getRandomValues(pool)
    used = 0
  }
  const random = (i: number) => pool[used + i]!
  const time = nowMs.toString(16).padStart(12, '0')
  const text = `${time.slice(0, 8)}-${time.slice(8)}-${HEX[0x70 | (random(0) & 0x0f)]}${HEX[random(1)]}-${
    HEX[0x80 | (random(2) & 0x3f)]
  }${HEX[random(3)]}-${HEX[random(4)]}${HEX[random(5)]}${HEX[random(6)]}${HEX[random(7)]}${HEX[random(8)]}${HEX[random(9)]}`
  pool.fill(0, used, used + RANDOM_BYTES)
  used += RANDOM_BYTES
  return text
}

/** New ids by a clock. */
export const uuidsBy =
  (clock: Pick<Clock, 'now'>): (() => string) =>
  () =>
    uuidv7(clock.now().getTime())

const RANDOM_BYTES = 10
const pool = new Uint8Array(RANDOM_BYTES * 256)
let used = pool.length

const HEX = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
