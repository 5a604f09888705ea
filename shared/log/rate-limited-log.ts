import type { Clock } from '../time/clock.ts'

const MINUTE_MS = 60_000

export type RateLimited = (kind: string, say: () => void) => void

/** What a message says of those that are left out. */
export const ONCE = 'further ones within a minute are not logged'

/** Lets a message of each kind be said at most once a minute: what fails for every record must not fill a disk with lines. */
export function rateLimitedLog(clock: Clock): RateLimited {
  const lastEmitted = new Map<string, number>()
  return (kind, say) => {
    const now = clock.monotonic()
    const before = lastEmitted.get(kind)
    if (before !== undefined && now - before < MINUTE_MS) return
    lastEmitted.set(kind, now)
    say()
  }
}
