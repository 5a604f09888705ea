import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import { budgetDimension } from '../../shared/wire/runtime/error.ts'
import type { Models } from '../execution/models/model.ts'
import type { DayOf } from './day.ts'
import { type Ledger, ledger } from './ledger.ts'
import { budgetNotices } from './notices.ts'
import { type BudgetStore, budgetStore } from './store.ts'
import { toolLimits } from './tool-limits.ts'
import { spending } from './watch-spending.ts'

export interface BudgetsOptions {
  db: Db
  metrics: Metrics
  models: Pick<Models, 'find'>
  dayOf: DayOf
  now: () => Date
  newId: () => string
  log: Log
}

export interface Budgets {
  store: BudgetStore
  ledger: Ledger
  useTool: ReturnType<typeof toolLimits>
  spending: ReturnType<typeof spending>
}

/** Budgets over one store. */
export function assembleBudgets({ db, metrics, newId, log, ...rest }: BudgetsOptions): Budgets {
  const store = budgetStore(db)
  const dimensions = budgetDimension.options.map(dimension => ({ dimension }))
  const notices = budgetNotices({ write: store.write, newId, now: rest.now })
  const made = ledger({
    store,
    ...rest,
    notices,
    refused: metrics.counter(
      'waybill_budget_refusals_total',
      'Runs and calls that a hard limit refused, by dimension.',
      dimensions,
    ),
    softly: metrics.counter('waybill_budget_soft_total', 'Runs that passed a soft limit, by dimension.', dimensions),
  })
  return {
    store,
    useTool: toolLimits({ store, dayOf: rest.dayOf, now: rest.now }),
    spending: spending({
      store,
      notices,
      noted: made.noteFar,
      dayOf: rest.dayOf,
      now: rest.now,
      failed: error => log.warn('a budget could not be looked at', { error }),
    }),
    ledger: made,
  }
}
