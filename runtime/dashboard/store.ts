import { type Db, rowsOf } from '../../shared/sql/db.ts'

/** What tells that a page of the dashboard would look different now. */
export function markStore(db: Db) {
  return {
    /** Another text when something in the lists of these tenants is another than before. */
    async marks(tenantIds: readonly string[]): Promise<Map<string, string>> {
      const found = await db.execute({ sql: MARKS_SQL, args: [JSON.stringify(tenantIds)] })
      return new Map(rowsOf<{ tenant: string; mark: string }>(found).map(({ tenant, mark }) => [tenant, mark]))
    },
  }
}

/**
 * The newest run, the last that ended, and the open ones by their last change: a run that begins, waits or ends changes one of them, and so
 * does a turn. What waits for people is among it. Reads as many entries as there are open runs.
 */
export const MARKS_SQL = `select one.value as tenant,
  coalesce((select id from runs indexed by runs_apart where tenant_id = one.value and trigger_kind <> 'session'
    order by created_ms desc, id desc limit 1), '')
  || coalesce((select id || finished_ms from runs indexed by runs_ended where tenant_id = one.value and finished_ms is not null
    order by finished_ms desc limit 1), '')
  || (select count(*) || ' ' || coalesce(sum(updated_ms), 0) from runs indexed by runs_status
    where tenant_id = one.value and status in ('queued', 'running', 'waiting'))
  || ' ' || (select count(*) from approvals where tenant_id = one.value and status = 'pending') as mark
from json_each(?1) as one`
