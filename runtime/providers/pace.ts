import type { Clock } from '../../shared/time/clock.ts'
import type { RateLimitWait } from '../execution/models/model.ts'

/** Between two calls of a model, once its provider has refused one of them. */
const FIRST_GAP_MS = 100
const LONGEST_GAP_MS = 10_000
/** Below this, calls are spaced no longer. */
const LEAST_GAP_MS = 20
/** About one call in ten is refused where the pace is near what the provider takes. */
const SLOWER = 1.5
const FASTER = 0.96
/** Providers count by the minute at most. */
const MINUTE_MS = 60_000
/** A provider that took no call for so long, and names no time, counts by the day: what is refused then is not waited for. */
const SPENT_MS = 2 * MINUTE_MS
/** A shorter wait is not shown. */
const SHOWN_MS = 1000

interface Waiting {
  go: () => void
}

export type Pace = ReturnType<typeof pace>

/**
 * How fast calls of one model may follow each other, learned from what its provider refuses. Those that have to wait go in the order in
 * which they came, so that none uses up its attempts while others are taken.
 */
export function pace({ monotonic }: Pick<Clock, 'monotonic'>) {
  const queue: Waiting[] = []
  let gapMs = 0
  /** When the next call may be made. */
  let nextMs = 0
  let slowedMs = 0
  /** Since when each call was refused without a word of how long. */
  let refusedSinceMs: number | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  function take(): void {
    nextMs = monotonic() + gapMs
  }

  function release(): void {
    timer = undefined
    while (queue.length > 0 && monotonic() >= nextMs) {
      take()
      queue.shift()!.go()
    }
    if (queue.length > 0) releaseLater()
  }

  function releaseLater(): void {
    timer = setTimeout(release, Math.max(1, nextMs - monotonic()))
  }

  function inQueue(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const leave = () => {
        queue.splice(queue.indexOf(one), 1)
        reject(signal.reason)
      }
      const one: Waiting = {
        go() {
          signal.removeEventListener('abort', leave)
          resolve()
        },
      }
      queue.push(one)
      signal.addEventListener('abort', leave, { once: true })
      if (timer === undefined) releaseLater()
    })
  }

  const isBusy = () => queue.length > 0 || monotonic() < nextMs

  return {
    /** Whether a call that is made now has to wait. */
    isBusy,

    /** Resolves when the next call may be made; rejects with the reason of a signal. */
    async ready({ signal, drained, show }: RateLimitWait): Promise<void> {
      if (signal.aborted) throw signal.reason
      if (monotonic() - nextMs > MINUTE_MS) {
        gapMs = 0
        refusedSinceMs = undefined
      }
      if (!isBusy()) return take()
      const waitMs = nextMs - monotonic() + queue.length * gapMs
      const waited = inQueue(AbortSignal.any([signal, drained]))
      if (waitMs < SHOWN_MS) return waited
      const shown = show(waitMs)
      try {
        await waited
      } finally {
        await shown
        await show(undefined)
      }
    },

    /** The provider took a call. */
    answered(startedMs: number): void {
      refusedSinceMs = undefined
      // Made before the pace was changed, it says nothing of it.
      if (startedMs < slowedMs) return
      gapMs *= FASTER
      if (gapMs < LEAST_GAP_MS) gapMs = 0
    },

    /** The provider refused a call, and may have said how long to wait; whether no call is worth waiting for. */
    refused(startedMs: number, waitMs: number | undefined): boolean {
      const nowMs = monotonic()
      refusedSinceMs = waitMs === undefined ? (refusedSinceMs ?? nowMs) : undefined
      if (refusedSinceMs !== undefined && nowMs - refusedSinceMs > SPENT_MS) {
        // Those that wait learn the same one after another.
        gapMs = FIRST_GAP_MS
        nextMs = nowMs + gapMs
        return true
      }
      if (startedMs >= slowedMs) {
        gapMs = Math.min(LONGEST_GAP_MS, Math.max(FIRST_GAP_MS, gapMs * SLOWER))
        slowedMs = nowMs
      }
      nextMs = Math.max(nextMs, nowMs + Math.min(waitMs ?? gapMs, MINUTE_MS))
      return false
    },
  }
}

/** More models than a process calls; a pace that is forgotten is learned anew. */
const MOST_PACES = 1000

export type Paces = ReturnType<typeof paces>

/** The paces of models that a provider has refused calls of; the others have none. */
export function paces(clock: Pick<Clock, 'monotonic'>) {
  const all = new Map<string, Pace>()
  return {
    of: (id: string): Pace | undefined => all.get(id),
    refused(id: string, startedMs: number, waitMs: number | undefined): boolean {
      let found = all.get(id)
      if (found === undefined) {
        for (const [idle, one] of all) if (all.size >= MOST_PACES && !one.isBusy()) all.delete(idle)
        found = pace(clock)
        all.set(id, found)
      }
      return found.refused(startedMs, waitMs)
    },
  }
}
