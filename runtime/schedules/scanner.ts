import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'

/** Windows are fired at most this long after their time (contract §9), whoever changed the store meanwhile. */
const LONGEST_PAUSE_MS = 1000
/** What is due although a look has just ended, because it came meanwhile or could not be fired. */
const BREATH_MS = 50
/** A process that stood still for longer than this was away. */
const AWAY_MS = 60_000
const FIRES_KEPT_MS = 90 * 86_400_000
const PRUNE_EVERY_MS = 60_000
const PRUNE_MOST = 5000

export interface ScannerDeps {
  fire: (options: { missedBeforeMs: number }) => Promise<void>
  store: {
    nextDue: () => Promise<number | undefined>
    prune: (beforeMs: number, most: number) => Promise<void>
  }
  clock: Clock
  log: Log
}

export type Scanner = ReturnType<typeof scanner>

/** Fires schedules when they are due, as long as the process lives. A host without timers calls `once` instead. */
export function scanner({ fire, store, clock, log }: ScannerDeps) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let looking: Promise<void> | undefined
  let startedMs: number | undefined
  let pruneMs = 0

  async function look(missedBeforeMs: number): Promise<void> {
    await fire({ missedBeforeMs })
    const nowMs = clock.now().getTime()
    if (nowMs < pruneMs) return
    pruneMs = nowMs + PRUNE_EVERY_MS
    await store.prune(nowMs - FIRES_KEPT_MS, PRUNE_MOST)
  }

  async function tick(): Promise<void> {
    if (startedMs === undefined) return
    let pauseMs = LONGEST_PAUSE_MS
    try {
      // Another instance that was there fires within the second, so what is older than that was missed.
      await look(Math.max(startedMs - LONGEST_PAUSE_MS, clock.now().getTime() - AWAY_MS))
      const due = await store.nextDue()
      const inMs = due === undefined ? pauseMs : due - clock.now().getTime()
      pauseMs = Math.min(pauseMs, inMs > 0 ? inMs : BREATH_MS)
    } catch (error) {
      log.error('schedules could not be fired', { error })
    }
    plan(pauseMs)
  }

  function plan(pauseMs: number): void {
    clearTimeout(timer)
    if (startedMs === undefined) return
    timer = setTimeout(() => {
      looking ??= tick().finally(() => {
        looking = undefined
      })
    }, pauseMs)
  }

  return {
    start(): void {
      if (startedMs !== undefined) return
      startedMs = clock.now().getTime()
      plan(0)
    },
    /** A schedule changed: it may be due before the next look. */
    wake(): void {
      if (looking === undefined) plan(0)
    },
    /** One look, for a host whose platform calls it every minute or so: what came since two minutes ago is on time. */
    once: (): Promise<void> => look(clock.now().getTime() - 2 * AWAY_MS),
    async stop(): Promise<void> {
      startedMs = undefined
      clearTimeout(timer)
      await looking
    },
  }
}
