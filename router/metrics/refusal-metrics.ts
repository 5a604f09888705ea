import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { BudgetRefusal } from '../budget/ledger.ts'

/** Counts what was not done for want of room or of money (docs/spec/router.md §2.7). */
export function refusalMetrics(metrics: Metrics) {
  const refuseWhenFull = metrics.counter('router_shed_total', 'Calls refused because too many were being answered.')
  const budget = metrics.counter('router_budget_refusals_total', 'Calls not made because a budget did not cover them.')
  refuseWhenFull.add(0, { reason: 'concurrency' })
  return {
    refuseWhenFull: (reason: 'concurrency') => refuseWhenFull.add(1, { reason }),
    budgetRefused: (scope: BudgetRefusal['scope']) => budget.add(1, { scope }),
  }
}
