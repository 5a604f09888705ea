import type { OffsetAt } from './zone.ts'

/**
 * A wall-clock time is written as the milliseconds that UTC would have if its clocks showed that time. In a zone it happens
 * once, twice (the clocks are set back over it) or not at all (they are set forward over it).
 */
export type WallPlace =
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
export function placeOfWall(wall: number, offsetAt: OffsetAt): WallPlace {
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
export function changeBetween(from: number, to: number, offsetAt: OffsetAt): number {
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
