import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { ErrorBudget } from './common-keys.ts'
import type { GateRunRecord } from './run-gates.ts'

export type ErrorBudgets = ReturnType<typeof createErrorBudgets>

export interface BudgetSnapshot {
  readonly tenantId: string
  readonly gateId: string
  readonly state: 'active' | 'disabled'
  /** In the window; 0 while disabled. */
  readonly runs: number
  readonly errors: number
  /** Since when it is disabled. */
  readonly since: Date | null
}

interface BudgetChange {
  readonly tenantId: string
  readonly gateId: string
  readonly state: 'active' | 'disabled'
}

export interface ErrorBudgetsDeps {
  /** Of the config in use; a reload may change or remove it. */
  readonly budgetOf: (gateId: string) => ErrorBudget | undefined
  readonly clock: Clock
  /** For the log and the gauge. */
  readonly onChange?: (change: BudgetChange) => void
}

/** The error budgets of this process, one for each tenant and gate. */
export function createErrorBudgets({ budgetOf, clock, onChange }: ErrorBudgetsDeps) {
  const tenants = new Map<string, Map<string, BudgetState>>()

  const stateOf = (tenantId: string, gateId: string) => tenants.get(tenantId)?.get(gateId) ?? freshBudget

  function move(tenantId: string, gateId: string, to: (state: BudgetState, budget: ErrorBudget) => BudgetState): void {
    const budget = budgetOf(gateId)
    if (budget === undefined) return
    const from = stateOf(tenantId, gateId)
    const state = to(from, budget)
    const gates = tenants.get(tenantId) ?? new Map<string, BudgetState>()
    tenants.set(tenantId, gates)
    gates.set(gateId, state)
    if (from.phase !== state.phase) onChange?.({ tenantId, gateId, state: state.phase })
  }

  return {
    isDisabled: (tenantId: string, gateId: string): boolean => stateOf(tenantId, gateId).phase === 'disabled',

    /** Counts what `runGates` did; runs that were cancelled or left out say nothing. */
    record(tenantId: string, runs: readonly GateRunRecord[]): void {
      for (const { gateId, outcome } of runs) {
        if (outcome !== 'ran' && outcome !== 'error') continue
        move(tenantId, gateId, (state, budget) => countRun(state, budget, outcome === 'error', clock.monotonic()))
      }
    },

    /** Takes the right to the one probe; `endProbe` must follow. */
    claimProbe(tenantId: string, gateId: string): boolean {
      if (!isProbeDue(stateOf(tenantId, gateId), clock.monotonic())) return false
      move(tenantId, gateId, beginProbe)
      return true
    },

    endProbe(tenantId: string, gateId: string, outcome: 'ran' | 'error' | 'cancelled'): void {
      move(tenantId, gateId, (state, budget) => endProbe(state, budget, outcome, clock.monotonic()))
    },

    /** For capabilities and metrics; with a tenant, only its own. Gates that left the config are left out. */
    snapshot(only?: string): BudgetSnapshot[] {
      return [...tenants].flatMap(([tenantId, gates]) => {
        if (only !== undefined && tenantId !== only) return []
        return [...gates].flatMap(([gateId, state]) =>
          budgetOf(gateId) === undefined ? [] : [{ tenantId, gateId, ...describe(state) }],
        )
      })
    },
  }

  function describe(state: BudgetState): Omit<BudgetSnapshot, 'tenantId' | 'gateId'> {
    if (state.phase === 'active')
      return { state: 'active', runs: state.errors.length, errors: state.errors.filter(Boolean).length, since: null }
    const since = new Date(clock.now().getTime() - (clock.monotonic() - state.sinceMs))
    return { state: 'disabled', runs: 0, errors: 0, since }
  }
}

/** A line for each gate that goes off, and for each that comes back. */
export const gateChanges =
  (log: Log) =>
  ({ tenantId, gateId, state }: BudgetChange): void => {
    const fields = { gate: gateId, tenant_id: tenantId }
    if (state === 'active') log.info('a gate works again and is switched on', fields)
    else log.warn('a gate failed more often than its error_budget allows: it is off, and is tried again later', fields)
  }

export type BudgetState =
  /** `errors[i]` tells of run i in the window, oldest first. */
  | { readonly phase: 'active'; readonly errors: readonly boolean[] }
  | {
      readonly phase: 'disabled'
      readonly sinceMs: number
      /** No probe before this. */
      readonly probeAtMs: number
      readonly probing: boolean
      readonly good: number
    }

export const freshBudget: BudgetState = { phase: 'active', errors: [] }

/** Counts a run. What was under way when the gate went off comes too late to matter. */
export function countRun(state: BudgetState, budget: ErrorBudget, isError: boolean, nowMs: number): BudgetState {
  if (state.phase === 'disabled') return state
  // The usual case: nothing but good runs in a full window, and one more of them.
  if (!isError && state.errors.length >= budget.window && !state.errors.includes(true)) return state
  const errors = [...state.errors, isError].slice(-budget.window)
  const failed = errors.filter(Boolean).length
  // A window smaller than min_runs would otherwise never be enough.
  const isEnough = errors.length >= Math.min(budget.minRuns, budget.window)
  if (!isEnough || failed / errors.length <= budget.maxError) return { phase: 'active', errors }
  const probeAtMs = nowMs + budget.probeAfterS * 1000
  return { phase: 'disabled', sinceMs: nowMs, probeAtMs, probing: false, good: 0 }
}

export function isProbeDue(state: BudgetState, nowMs: number): boolean {
  return state.phase === 'disabled' && !state.probing && nowMs >= state.probeAtMs
}

/** One probe at a time. */
export function beginProbe(state: BudgetState): BudgetState {
  return state.phase === 'disabled' ? { ...state, probing: true } : state
}

/** A good probe allows the next at once; a bad one starts the wait and the count anew; `cancelled` says nothing. */
export function endProbe(
  state: BudgetState,
  budget: ErrorBudget,
  outcome: 'ran' | 'error' | 'cancelled',
  nowMs: number,
): BudgetState {
  if (state.phase === 'active' || !state.probing) return state
  if (outcome === 'cancelled') return { ...state, probing: false }
  if (outcome === 'error') return { ...state, probing: false, good: 0, probeAtMs: nowMs + budget.probeAfterS * 1000 }
  const good = state.good + 1
  return good >= budget.probes ? freshBudget : { ...state, probing: false, good }
}
