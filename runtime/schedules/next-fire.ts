import type { CronPattern } from './cron-pattern.ts'
import { changeBetween, placeOfWall } from './wall-clock.ts'
import type { OffsetAt } from './zone.ts'

const DAY = 86_400_000

/**
 * The first firing after an instant (docs/spec/runtime.md §9). With an hour field, wall-clock times are enumerated and each is mapped to
 * the instant at which it happens first; one that the clocks jump over fires when they have jumped. Without one, every
 * instant whose wall-clock time matches fires, so that a repeated hour is worked through twice.
 */
export function nextFire(pattern: CronPattern, offsetAt: OffsetAt, afterMs: number): number | undefined {
  return pattern.everyHour ? nextByTime(pattern, offsetAt, afterMs) : nextByWall(pattern, offsetAt, afterMs)
}

function nextByWall({ nextWall }: CronPattern, offsetAt: OffsetAt, afterMs: number): number | undefined {
  let wall = afterMs + offsetAt(afterMs)
  const here = placeOfWall(wall, offsetAt)
  // The second time around, everything up to the end of the repeated times has fired.
  if (here.kind === 'twice' && afterMs >= here.second) wall = here.wallEnd - 1
  for (;;) {
    const next = nextWall(wall)
    if (next === undefined) return undefined
    const at = firstInstant(next, offsetAt)
    if (at > afterMs) return at
    wall = next
  }
}

/** When a wall-clock time fires: once, at its first occurrence, or at the end of the gap that swallowed it. */
function firstInstant(wall: number, offsetAt: OffsetAt): number {
  const place = placeOfWall(wall, offsetAt)
  switch (place.kind) {
    case 'once':
      return place.at
    case 'twice':
      return place.first
    case 'gap':
      return place.end
  }
}

function nextByTime({ nextWall }: CronPattern, offsetAt: OffsetAt, afterMs: number): number | undefined {
  // From here on the clock runs evenly until the offset changes; a match beyond that belongs to the clock after it.
  let from = afterMs
  let offset = offsetAt(afterMs)
  for (;;) {
    const wall = nextWall(from + offset)
    if (wall === undefined) return undefined
    const at = wall - offset
    // Clocks that are set back soon bring times again that lie before the next match, which may be far away.
    const soon = Math.min(at, afterMs + DAY)
    const probe = offsetAt(soon) === offset ? at : soon
    if (offsetAt(probe) === offset) return at
    const change = changeBetween(from, probe, offsetAt)
    offset = offsetAt(change)
    // The instant of the change itself may match.
    from = change - 1
  }
}
