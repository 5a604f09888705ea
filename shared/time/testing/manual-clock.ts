import type { Clock } from '../clock.ts'

/** A clock for tests: it stands still until `advance` is called, and both of its hands move together. */
export function manualClock(start: Date = new Date(0)): Clock & { advance(ms: number): void } {
  let elapsed = 0
  return {
    now: () => new Date(start.getTime() + elapsed),
    monotonic: () => elapsed,
    advance(ms) {
      elapsed += ms
    },
  }
}
