const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long ago, or in how long. */
export function relativeTime(atMs: number, nowMs: number): string {
  const size = Math.abs(nowMs - atMs)
  if (size < 10_000) return 'now'
  const words = wordsOf(size)
  return atMs < nowMs ? `${words} ago` : `in ${words}`
}

function wordsOf(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)}\u00a0s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}\u00a0min`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}\u00a0h`
  if (ms < 61 * DAY) return `${Math.floor(ms / DAY)}\u00a0days`
  if (ms < 731 * DAY) return `${Math.floor(ms / (30.4 * DAY))}\u00a0months`
  return `${Math.floor(ms / (365.25 * DAY))}\u00a0years`
}
