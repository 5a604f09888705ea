import { type NanoUsd, sumNano } from '../../shared/money/money.ts'
import { type Clock, systemClock } from '../../shared/time/clock.ts'
import type { ErrorBudgets } from './error-budgets.ts'
import type { Gate, GateSubject } from './gate.ts'
import { type GateTake, runGate } from './run-gate.ts'

export interface ProbeGatesOptions {
  readonly gates: readonly Gate[]
  readonly subject: GateSubject
  readonly tenantId: string
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
