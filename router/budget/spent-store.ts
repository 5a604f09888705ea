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

/** By the clock, and by what was written last, as a clock that has jumped ahead may be set back, and the day goes on. */
const TIDY = `delete from router_budgets where updated_at < min(?,
  (select strftime('%Y-%m-%dT%H:%M:%fZ', max(updated_at), '-${FORGET_MS / 1000} seconds') from router_budgets))`

/** Spent totals in the trace store, so that a restart does not open a new budget. */
export function spentStore(db: Db) {
  let tidied: number | undefined
  return {
    /** Adds to what is stored; several processes on one store add up. */
    async add(rows: readonly SpentRow[], at: Date): Promise<void> {
      if (rows.length === 0) return
      const updated_at = at.toISOString()
      const added = upsert.statement(rows.map(row => ({ ...row, updated_at })))
      const since = tidied === undefined ? Number.POSITIVE_INFINITY : Math.abs(at.getTime() - tidied)
      const tidy = since < TIDY_MS ? [] : [{ sql: TIDY, args: [before(at)] }]
      // What is written now says nothing of a clock that was not seen to come here.
      await db.write(since < FORGET_MS ? [added, ...tidy] : [...tidy, added])
      if (since >= TIDY_MS) tidied = at.getTime()
    },
    /** Totals that can still matter. Those of longer ago may, too: the clock may be ahead now. */
    async totals(): Promise<readonly SpentRow[]> {
      // More than that is refused by every budget as it is.
      const sql = `select key, max(min(spent, ${Number.MAX_SAFE_INTEGER}), 0) as spent from router_budgets`
      return rowsOf<SpentRow>(await db.execute(sql))
    },
  }
}
