import type { Db } from '../../shared/sql/db.ts'
import type { AgentStore } from '../agents/store.ts'
import type { DayOf } from './day.ts'
import type { Ledger } from './ledger.ts'
import type { PriceChecks } from './price-checks.ts'
import type { BudgetStore } from './store.ts'

export interface BudgetsDeps {
  db: Db
  store: BudgetStore
  ledger: Pick<Ledger, 'look'>
  prices: Pick<PriceChecks, 'ofBudget'>
  agents: Pick<AgentStore, 'getByName' | 'currentByName'>
  dayOf: DayOf
  now: () => Date
  maxBodyBytes: number
}
