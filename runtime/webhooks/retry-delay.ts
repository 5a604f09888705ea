const FIRST_MS = 10_000
const LAST_MS = 6 * 60 * 60_000
const RETRIES = 8
/** Spreads what failed together; it only lengthens, so that nothing is sent again earlier than it was said. */
const JITTER = 0.2

/**
 * How long after a failed attempt the next one follows, counting attempts from 1: 10 s, then three times as long each time, up
 * to 6 h (docs/spec/runtime.md §15). Undefined after the eighth retry: the receiver is gone.
 */
export function retryDelayMs(attempt: number, random: () => number): number | undefined {
  if (attempt > RETRIES) return undefined
  return Math.round(Math.min(LAST_MS, FIRST_MS * 3 ** (attempt - 1) * (1 + JITTER * random())))
}
