/** The wall clock and a clock that only goes forward, so that tests can hold both still. */
export interface Clock {
  now(): Date
  /** Milliseconds since an arbitrary start; never jumps. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
}

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
