import type { Clock } from '../../shared/time/clock.ts'

const MINUTE_MS = 60_000

/** Lets a message of each kind be said at most once a minute: what fails for every record must not fill a disk with lines. */
export function rarely(clock: Clock): (kind: string, say: () => void) => void {
  const lastSaid = new Map<string, number>()
  return (kind, say) => {
    const now = clock.monotonic()
    const before = lastSaid.get(kind)
    if (before !== undefined && now - before < MINUTE_MS) return
    lastSaid.set(kind, now)
    say()
  }
}
