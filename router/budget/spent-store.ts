import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import { FORGET_MS, type SpentRow } from './ledger.ts'

const upsert = insertRows(
  'router_budgets',
  { key: 'text', spent: 'integer', updated_at: 'text' },
  { after: 'on conflict (key) do update set spent = spent + excluded.spent, updated_at = excluded.updated_at' },
)

/** How often what can matter no more is removed. */
const TIDY_MS = 3_600_000

const before = (now: Date) => new Date(now.getTime() - FORGET_MS).toISOString()

/** Spent totals in the trace store, so that a restart does not open a new budget. */
export function spentStore(db: Db) {
  let tidied: number | undefined
  return {
    /** Adds to what is stored; several processes on one store add up. */
    async add(rows: readonly SpentRow[], at: Date): Promise<void> {
      if (rows.length === 0) return
      const updated_at = at.toISOString()
      const statements = [upsert.statement(rows.map(row => ({ ...row, updated_at })))]
      tidied ??= at.getTime()
      const since = Math.abs(at.getTime() - tidied)
      // By a clock that has just jumped nothing is removed: it may be set back, and the day goes on.
      if (since >= TIDY_MS && since < FORGET_MS)
        statements.push({ sql: 'delete from router_budgets where updated_at < ?', args: [before(at)] })
      await db.write(statements)
      if (since >= TIDY_MS) tidied = at.getTime()
    },
    /** Totals that can still matter. Those of longer ago may, too: the clock may be ahead now. */
    async totals(): Promise<readonly SpentRow[]> {
      // More than that is refused by every budget as it is.
      const sql = `select key, min(spent, ${Number.MAX_SAFE_INTEGER}) as spent from router_budgets`
      return rowsOf<SpentRow>(await db.execute(sql))
    },
  }
}
