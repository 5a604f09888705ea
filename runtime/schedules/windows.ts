/** The first firing after an instant. */
export type Next = (afterMs: number) => number | undefined

export interface Windows {
  /** Those that passed while no process was running, oldest first: the newest of them, at most `most`. */
  missed: number[]
  /** Those whose time is now, oldest first. */
  onTime: number[]
  /** The one after them; undefined: there is none any more. */
  next: number | undefined
}

/**
 * The windows of a schedule from the one that is due up to now. What lies before `missedBefore` is missed. The work depends
 * on how many are wanted and not on how long the service was away: missed ones are looked for backwards, in doubling steps.
 */
export function windowsUpTo(
  next: Next,
  { dueMs, nowMs, missedBeforeMs, most }: { dueMs: number; nowMs: number; missedBeforeMs: number; most: number },
): Windows {
  const missed = dueMs < missedBeforeMs ? newest(next, dueMs, Math.min(missedBeforeMs, nowMs + 1), most) : []
  const onTime: number[] = []
  let at = dueMs >= missedBeforeMs ? dueMs : next(missedBeforeMs - 1)
  while (at !== undefined && at <= nowMs) {
    onTime.push(at)
    at = next(at)
  }
  return { missed, onTime, next: at }
}

const FIRST_STEP_MS = 60_000

/** The newest firings from `fromMs`, which is one, to before `toMs`. */
function newest(next: Next, fromMs: number, toMs: number, most: number): number[] {
  for (let step = FIRST_STEP_MS; ; step *= 2) {
    const start = Math.max(fromMs, toMs - step)
    const found = between(next, start, toMs)
    if (found.length >= most || start === fromMs) return found.slice(-most)
  }
}

function between(next: Next, fromMs: number, toMs: number): number[] {
  const found: number[] = []
  for (let at = next(fromMs - 1); at !== undefined && at < toMs; at = next(at)) found.push(at)
  return found
}
