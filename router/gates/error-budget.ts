/** docs/spec/router.md §5.4: when a gate that does not work is switched off, and how it comes back. */
export interface ErrorBudget {
  /** Runs that are remembered. */
  readonly window: number
  /** Fewer runs prove nothing. */
  readonly minRuns: number
  /** The share of errors that is still accepted. */
  readonly maxError: number
  readonly probeAfterS: number
  /** Good probes in a row that bring the gate back. */
  readonly probes: number
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
