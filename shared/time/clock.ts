import type { Log } from '../log/log.ts'

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

/** A jump by more is no delay, and no sleep of a machine over a night. */
const JUMP_MS = 2 * 86_400_000
/** So long a clock stays where it has jumped to before anything is deleted by it. */
const STAYS_MS = 3_600_000

interface DeletionTimeDeps {
  clock: Clock
  /** The time of the newest thing that is kept; undefined where there is none. */
  newestMs: () => Promise<number | undefined>
  log: Pick<Log, 'warn'>
}

/**
 * The time by which what is old is deleted. A clock that is set days ahead, or that a machine starts with, may be wrong, and what is deleted
 * does not come back: until it has stayed there for an hour, the time goes on from where it was.
 */
export function deletionTime({ clock, newestMs, log }: DeletionTimeDeps): () => Promise<number> {
  const started = { wall: clock.now().getTime(), monotonic: clock.monotonic() }
  // At once: what is kept later has the time of this clock.
  const asked = newestMs()
  asked.catch(() => undefined)
  let at: typeof started | undefined
  let jumpedAt: number | undefined

  return async () => {
    at ??= { ...started, wall: Math.min(started.wall, (await asked.catch(newestMs)) ?? started.wall) }
    const [wall, monotonic] = [clock.now().getTime(), clock.monotonic()]
    const expected = at.wall + monotonic - at.monotonic
    if (wall > expected + JUMP_MS) {
      if (jumpedAt === undefined) log.warn(AHEAD, { from: new Date(expected), to: new Date(wall) })
      jumpedAt ??= monotonic
      if (monotonic - jumpedAt < STAYS_MS) return expected
    }
    jumpedAt = undefined
    at = { wall, monotonic }
    return wall
  }
}

const AHEAD =
  'the clock is days ahead of what was kept last: nothing is deleted by it unless it stays there for an hour'

/** A clock that runs a little fast or slow is led back by less. */
const SLACK_MS = 1000

/** Asked again and again, says whether the wall clock was set back since the time before. */
export function setBacks({ now, monotonic }: Clock): () => boolean {
  const ahead = () => now().getTime() - monotonic()
  let before = ahead()
  return () => {
    const was = before
    before = ahead()
    return before < was - SLACK_MS
  }
}
