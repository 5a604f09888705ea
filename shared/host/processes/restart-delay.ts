const FIRST_MS = 50
const LONGEST_MS = 5000
/** After so long without an end the next one is the first again. */
const QUIET_MS = 30_000

/** How long to wait before a process that ended is started anew: not at all the first time, longer each time it ends soon again. */
export function restartDelay(now: () => number = () => performance.now()) {
  let count = 0
  let last = Number.NEGATIVE_INFINITY
  return {
    next(): number {
      count = now() - last > QUIET_MS ? 0 : count + 1
      last = now()
      return count === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (count - 1))
    },
  }
}
