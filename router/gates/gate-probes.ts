import { type NanoUsd, sumNano } from '../../shared/money/money.ts'
import { backgroundTasks } from '../../shared/time/background-tasks.ts'
import { type Clock, systemClock } from '../../shared/time/clock.ts'
import type { ErrorBudgets } from './error-budgets.ts'
import type { Gate, GateSubject } from './gate.ts'
import { type GateTake, runGate } from './run-gate.ts'

export interface Probe {
  /** Those of the route that are switched off. */
  readonly gates: readonly Gate[]
  /** An answer that was decided without them. */
  readonly subject: GateSubject
  readonly tenantId: string
  /** What a probe cost goes to the account of the request. */
  readonly charge?: (cost: NanoUsd) => Promise<void>
}

export type GateProbes = ReturnType<typeof gateProbes>

/** Tries gates that are switched off on answers that were decided without them, beside the requests (docs/spec/router.md §5.4). */
export function gateProbes(
  budgets: ErrorBudgets,
  clock: Pick<Clock, 'monotonic'>,
  spent: (tenantId: string, cost: NanoUsd) => void,
) {
  const tasks = backgroundTasks()
  return {
    /** Returns at once. */
    consider({ gates, subject, tenantId, charge }: Probe): void {
      if (gates.length === 0) return
      tasks.start(async signal => {
        const cost = await probeGates({ gates, subject, tenantId, budgets, clock, signal })
        if (cost > 0) spent(tenantId, cost)
        await charge?.(cost)
      })
    },
    settled: tasks.settled,
    /** Aborts the probes that run. */
    close: tasks.close,
  }
}

interface ProbeGatesOptions extends Probe {
  readonly budgets: ErrorBudgets
  readonly signal: AbortSignal
  readonly clock?: Pick<Clock, 'monotonic'>
}

/**
 * Tries the disabled gates whose time has come on an answer that was decided without them, off the path of the request.
 * Resolves to what the probes cost.
 */
export async function probeGates({ gates, subject, tenantId, budgets, ...rest }: ProbeGatesOptions): Promise<NanoUsd> {
  const choice = subject.candidate.choices[0]
  if (choice === undefined) return 0
  const costs = await Promise.all(
    gates.map(async gate => {
      if (!budgets.claimProbe(tenantId, gate.id)) return 0
      let outcome: GateTake['outcome'] = 'error'
      try {
        const take = await runGate(gate, { ...subject, choice }, rest.signal, rest.clock ?? systemClock)
        outcome = take.outcome
        return take.costNano
      } catch {
        // What it threw may quote the answer; that it threw is a bad probe.
        return 0
      } finally {
        budgets.endProbe(tenantId, gate.id, outcome)
      }
    }),
  )
  return sumNano(costs)
}
