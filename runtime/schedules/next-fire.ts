import type { PreviewItem } from '../../shared/wire/runtime/schedule.ts'
import type { CronPattern } from './cron-pattern.ts'
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
  let from = afterMs
  // From here on the clock runs evenly until the offset changes; a match beyond that belongs to the clock after it.
  let start = afterMs
  let offset = offsetAt(start)
  for (;;) {
    const wall = nextWall(from + offset)
    if (wall === undefined) return undefined
    const at = wall - offset
    // Clocks that are set back soon bring times again that lie before the next match, which may be far away.
    const soon = Math.min(at, start + DAY)
    const probe = offsetAt(soon) === offset ? at : soon
    if (offsetAt(probe) === offset) return at
    start = changeBetween(start, probe, offsetAt)
    offset = offsetAt(start)
    // The instant of the change itself may match.
    from = start - 1
  }
}

/**
 * A wall-clock time is written as the milliseconds that UTC would have if its clocks showed that time. In a zone it happens
 * once, twice (the clocks are set back over it) or not at all (they are set forward over it).
 */
type WallPlace =
  | { kind: 'once'; at: number }
  /** `wallEnd`: the first wall-clock time after the ones that happen twice. */
  | { kind: 'twice'; first: number; second: number; wallEnd: number }
  /** `end`: the instant at which the clocks jump over it. */
  | { kind: 'gap'; end: number }

const HOUR = 3_600_000
// Zones lie between 12 hours behind UTC and 14 ahead, so a wall-clock time happens within these hours around it.
const BEFORE = 15 * HOUR
const AFTER = 13 * HOUR

/** Where a wall-clock time lies in a zone. Zones do not change their offset twice within these 28 hours. */
function placeOfWall(wall: number, offsetAt: OffsetAt): WallPlace {
  const before = offsetAt(wall - BEFORE)
  const after = offsetAt(wall + AFTER)
  if (before === after) return { kind: 'once', at: wall - before }
  const change = changeBetween(wall - BEFORE, wall + AFTER, offsetAt)
  const wallFrom = change + Math.min(before, after)
  const wallEnd = change + Math.max(before, after)
  if (wall < wallFrom) return { kind: 'once', at: wall - before }
  if (wall >= wallEnd) return { kind: 'once', at: wall - after }
  if (after > before) return { kind: 'gap', end: change }
  return { kind: 'twice', first: wall - before, second: wall - after, wallEnd }
}

/** The first instant with another offset than `from` has; `to` must have another one. Changes happen at whole seconds. */
function changeBetween(from: number, to: number, offsetAt: OffsetAt): number {
  const before = offsetAt(from)
  let low = Math.floor(from / 1000)
  let high = Math.ceil(to / 1000)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(middle * 1000) === before) low = middle
    else high = middle
  }
  return high * 1000
}

/** The next firings after an instant, earliest first, as the clock on the wall shows them. */
export function previewFires(
  pattern: CronPattern,
  offsetAt: OffsetAt,
  { afterMs, count }: { afterMs: number; count: number },
): PreviewItem[] {
  const items: PreviewItem[] = []
  let at: number | undefined = afterMs
  while (items.length < count) {
    at = nextFire(pattern, offsetAt, at)
    if (at === undefined) break
    const offset = offsetAt(at)
    items.push({
      at: new Date(at).toISOString(),
      local: new Date(at + offset).toISOString().slice(0, 19),
      offset: offsetText(offset),
    })
  }
  return items
}

/** `+02:00` */
function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}
