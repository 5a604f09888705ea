import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../../shared/log/log.ts'
import { type Clock, setBacks } from '../../shared/time/clock.ts'
import { dueLoop } from '../../shared/time/due-loop.ts'

/** Windows are fired at most this long after their time (docs/spec/runtime.md §9), even if another process changed the store meanwhile. */
const LONGEST_PAUSE_MS = 1000
/** A process that stood still for longer than this was away. */
const AWAY_MS = 60_000
const FIRES_KEPT_MS = 90 * 86_400_000
const PRUNE_EVERY_MS = 60_000
const PRUNE_MOST = 5000

export interface ScannerDeps {
  fire: (options: { missedBeforeMs: number }) => Promise<void>
  /** The clock was set back. */
  moveByClock: () => Promise<void>
  store: {
    nextDue: () => Promise<number | undefined>
    prune: (beforeMs: number, most: number) => Promise<void>
  }
  clock: Clock
  log: Log
}

export type Scanner = ReturnType<typeof scanner>

/** Fires schedules when they are due, as long as the process lives. A host without timers calls `once` instead. */
export function scanner({ fire, moveByClock, store, clock, log }: ScannerDeps) {
  const wasSetBack = setBacks(clock)
  let startedMs = 0
  let pruneAt = 0
  const once = rateLimitedLog(clock)

  async function look(missedBeforeMs: number): Promise<void> {
    if (wasSetBack()) await moveByClock()
    await fire({ missedBeforeMs })
    if (clock.monotonic() < pruneAt) return
    pruneAt = clock.monotonic() + PRUNE_EVERY_MS
    await store.prune(clock.now().getTime() - FIRES_KEPT_MS, PRUNE_MOST)
  }

  const loop = dueLoop({
    clock,
    longestPauseMs: LONGEST_PAUSE_MS,
    failed: error => once('failed', () => log.error(`schedules could not be fired; ${REPEATS_OMITTED}`, { error })),
    async look() {
      const nowMs = clock.now().getTime()
      // By a clock that was set back since, the start has not been yet.
      startedMs = Math.min(startedMs, nowMs)
      // Another instance that was there fires within the second, so what is older than that was missed.
      await look(Math.max(startedMs - LONGEST_PAUSE_MS, nowMs - AWAY_MS))
      return store.nextDue()
    },
  })

  return {
    start(): void {
      startedMs = clock.now().getTime()
      loop.start()
    },
    /** A schedule changed: it may be due before the next look. */
    wake: loop.wake,
    /** One look, for a host whose platform calls it every minute or so: what came since two minutes ago is on time. */
    once: (): Promise<void> => look(clock.now().getTime() - 2 * AWAY_MS),
    stop: loop.stop,
  }
}
