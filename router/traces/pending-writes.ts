import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** A record on its way, whose outcome a caller may wait for. */
export interface Entry {
  record: UnsealedTrace
  at: number
  resolve?: () => void
  reject?: (error: unknown) => void
}

/** Who waits for what: for one record to be kept or lost, or for all that were taken so far. */
export function pendingWrites() {
  const waiting = new Map<string, Promise<void>>()
  const flushes: { upTo: number; resolve: () => void }[] = []
  let accepted = 0
  let settled = 0

  return {
    /** Counts a record as taken; with `told`, its outcome can be asked for. */
    accept(record: UnsealedTrace, at: number, told: boolean): Entry {
      accepted++
      const entry: Entry = { record, at }
      if (!told) return entry
      const outcome = new Promise<void>((resolve, reject) => {
        entry.resolve = resolve
        entry.reject = reject
      })
      // There may be no waiting caller.
      outcome.catch(() => undefined)
      waiting.set(record.trace_id, outcome)
      return entry
    },
    settle(entry: Entry, error?: unknown): void {
      if (error === undefined) entry.resolve?.()
      else entry.reject?.(error)
      waiting.delete(entry.record.trace_id)
      settled++
      while (flushes[0] !== undefined && flushes[0].upTo <= settled) flushes.shift()?.resolve()
    },
    outcomeOf: (traceId: string): Promise<void> => waiting.get(traceId) ?? Promise.resolve(),
    /** Resolves when every record accepted so far is settled; `wake` is called if that is still to come. */
    all(wake: () => void): Promise<void> {
      const upTo = accepted
      if (settled >= upTo) return Promise.resolve()
      return new Promise(resolve => {
        flushes.push({ upTo, resolve })
        wake()
      })
    },
    /** A caller waits for all of them. */
    get awaited(): boolean {
      return flushes.length > 0
    },
  }
}
