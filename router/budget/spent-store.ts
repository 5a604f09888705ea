import type { Db } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import type { SpentRow } from './ledger.ts'

const upsert = insertRows(
  'budgets',
  { key: 'text', spent: 'integer', updated_at: 'text' },
  { after: 'on conflict (key) do update set spent = spent + excluded.spent, updated_at = excluded.updated_at' },
)

/** Spent totals in the trace store, so that a restart does not open a new budget. */
export function spentStore(db: Db) {
  return {
    /** Adds to what is stored; several processes on one store add up. */
    async add(rows: readonly SpentRow[], at: Date): Promise<void> {
      if (rows.length === 0) return
      const updated_at = at.toISOString()
      await db.execute(upsert.statement(rows.map(row => ({ ...row, updated_at }))))
    },
    /** Totals that can still matter: of the last two days. */
    async recent(now: Date): Promise<SpentRow[]> {
      const since = new Date(now.getTime() - 48 * 3_600_000).toISOString()
      const { rows } = await db.execute({ sql: 'select key, spent from budgets where updated_at >= ?', args: [since] })
      return rows.map(row => ({ key: String(row.key), spent: Number(row.spent) }))
    },
  }
}
