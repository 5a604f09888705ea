import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { type RunStatus, runStatuses } from '../../shared/wire/runtime/run.ts'

export const HOUR_MS = 3_600_000

export interface HourCount {
  hour: number
  status: RunStatus
  runs: number
}

export type FigureStore = ReturnType<typeof figureStore>

/** Figures that only the dashboard shows. Each statement reads an index, and no more of it than its window. */
export function figureStore(db: Db) {
  return {
    /** Runs by the hour in which they were created, since then. */
    async hours(tenantId: string, sinceMs: number): Promise<HourCount[]> {
      const found = await db.execute({ sql: HOURS_SQL, args: [tenantId, JSON.stringify(runStatuses), sinceMs] })
      return rowsOf<HourCount>(found).map(({ status, hour, runs }) => ({ status, hour, runs }))
    },

    /** Runs that are not over. */
    async open(tenantId: string): Promise<Partial<Record<RunStatus, number>>> {
      const found = await db.execute({ sql: OPEN_SQL, args: [tenantId] })
      return Object.fromEntries(rowsOf<Omit<HourCount, 'hour'>>(found).map(({ status, runs }) => [status, runs]))
    },

    /** Another text when something in the lists of these tenants is another than before. */
    async marks(tenantIds: readonly string[]): Promise<Map<string, string>> {
      const found = await db.execute({ sql: MARKS_SQL, args: [JSON.stringify(tenantIds)] })
      return new Map(rowsOf<{ tenant: string; mark: string }>(found).map(({ tenant, mark }) => [tenant, mark]))
    },
  }
}

/** For each status a range of `runs_status`, which has all that is counted. */
export const HOURS_SQL = `select runs.status, runs.created_ms / ${HOUR_MS} as hour, count(*) as runs
from json_each(?2) as one cross join runs indexed by runs_status
  on runs.tenant_id = ?1 and runs.status = one.value and runs.created_ms >= ?3
group by 1, 2`

export const OPEN_SQL = `select status, count(*) as runs from runs indexed by runs_status
where tenant_id = ?1 and status in ('queued', 'running', 'waiting') group by status`

/**
 * The newest run and the open ones by their last change: a run that begins, waits or ends changes one of them. What waits for people
 * is among it. Reads as many entries as there are open runs.
 */
export const MARKS_SQL = `select one.value as tenant,
  coalesce((select id from runs indexed by runs_list where tenant_id = one.value order by created_ms desc, id desc limit 1), '')
  || (select count(*) || ' ' || coalesce(sum(updated_ms), 0) from runs indexed by runs_status
    where tenant_id = one.value and status in ('queued', 'running', 'waiting'))
  || ' ' || (select count(*) from approvals where tenant_id = one.value and status = 'pending') as mark
from json_each(?1) as one`
