/** How long a burst of starts is remembered. */
export const REMEMBERED_MS = 300_000
const BURST_MS = 1000

/** When sandboxes of one kind were asked for, in milliseconds, the latest last. */
export type Starts = readonly number[]

/** What is still remembered of them. */
export const recentStarts = (starts: Starts, now: number): number[] => starts.filter(at => now - at < REMEMBERED_MS)

/** As many as were asked for within one second, at the most, of those that are remembered. */
export function burstOf(starts: Starts): number {
  let most = 0
  for (let first = 0, last = 0; last < starts.length; last++) {
    while (starts[last]! - starts[first]! >= BURST_MS) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** How many of each kind shall wait, in the order of the kinds: those that were asked for last have the first choice. */
export function placesOf(kinds: readonly Starts[], places: number): number[] {
  const given = kinds.map(() => 0)
  let left = places
  const latestFirst = kinds.map((_, index) => index).toSorted((a, b) => latest(kinds[b]!) - latest(kinds[a]!))
  for (const index of latestFirst) {
    given[index] = Math.min(left, burstOf(kinds[index]!))
    left -= given[index]!
  }
  return given
}

const latest = (starts: Starts) => starts.at(-1) ?? Number.NEGATIVE_INFINITY
