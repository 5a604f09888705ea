import { backgroundTasks } from '../../shared/time/background-tasks.ts'
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

/** Tries gates that are switched off on answers that were decided without them, beside the requests (docs/spec/router.md §5.4). */
export function gateProbes(budgets: ErrorBudgets, clock: Pick<Clock, 'monotonic'> = systemClock) {
  const tasks = backgroundTasks()
  return {
    /** Returns at once. */
    consider({ gates, subject, tenantId }: Probe): void {
      if (gates.length === 0) return
      tasks.start(signal => probeGates({ gates, subject, tenantId, budgets, clock, signal }))
    },
    settled: tasks.settled,
    /** Aborts the probes that run. */
    close: tasks.close,
  }
}
