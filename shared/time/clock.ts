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
