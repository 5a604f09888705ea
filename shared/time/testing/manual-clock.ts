import type { Clock } from '../clock.ts'

/** A clock for tests: it stands still until `advance` is called, which moves both of its hands. `set` moves that of the wall alone. */
export function manualClock(start: Date = new Date(0)): Clock & { advance(ms: number): void; set(by: number): void } {
  let elapsed = 0
  let ahead = 0
  return {
    now: () => new Date(start.getTime() + elapsed + ahead),
    monotonic: () => elapsed,
    advance(ms) {
      elapsed += ms
    },
    set(by) {
      ahead += by
    },
  }
}
