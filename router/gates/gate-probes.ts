import { type Clock, systemClock } from '../../shared/time/clock.ts'
import type { ErrorBudgets } from './error-budgets.ts'
import type { Gate, GateSubject } from './gate.ts'
import { probeGates } from './probe-gates.ts'

export interface Probe {
  /** Those of the route that are switched off. */
  readonly gates: readonly Gate[]
  /** An answer that was decided without them. */
  readonly subject: GateSubject
  readonly tenantId: string
}

export type GateProbes = ReturnType<typeof gateProbes>

/** Tries gates that are switched off on answers that were decided without them, beside the requests (router contract §5.4). */
export function gateProbes(budgets: ErrorBudgets, clock: Pick<Clock, 'monotonic'> = systemClock) {
  // One controller for each: an edge host lets a request use what it opened itself, and nothing of another.
  const running = new Map<AbortController, Promise<unknown>>()
  let closed = false

  return {
    /** Returns at once. */
    consider({ gates, subject, tenantId }: Probe): void {
      if (closed || gates.length === 0) return
      const stop = new AbortController()
      const probe = probeGates({ gates, subject, tenantId, budgets, clock, signal: stop.signal })
      running.set(
        stop,
        probe.finally(() => running.delete(stop)),
      )
    },
    /** Resolves when the probes that are under way now have ended. */
    async settled(): Promise<void> {
      await Promise.all(running.values())
    },
    /** Probes that are under way are given up. */
    async close(): Promise<void> {
      closed = true
      for (const stop of running.keys()) stop.abort()
      await Promise.all(running.values())
    },
  }
}
