import type { ResultSet } from '@libsql/client/web'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { nanoSum } from '../../shared/sql/sql-values.ts'
import type { EndedGroup, SlotFigures } from './slot-figures.ts'

export interface OpenRuns {
  queued: number
  running: number
  waiting: number
  approvals: number
  oldestQueuedMs: number | null
}

/** How much of one kind is open, and since when the oldest of it is. */
export interface OpenWork {
  what: string
  held: number
  oldestMs: number | null
}

export type OverviewStore = ReturnType<typeof overviewStore>

/** Figures of ended runs. Each statement reads an index alone, and no more of it than its time. */
export function overviewStore(db: Db) {
  return {
    /** The runs that ended from one moment until before another. */
    async slot(tenantId: string, fromMs: number, toMs: number): Promise<SlotFigures> {
      const args = [tenantId, fromMs, toMs]
      const [groups, durations] = await db.read([
        { sql: GROUPS_SQL, args },
        { sql: DURATIONS_SQL, args },
      ])
      return {
        groups: rowsOf<EndedGroup>(groups!).map(({ agentName, model, status, code, runs, costNano }) => ({
          agentName,
          model,
          status,
          code,
          runs,
          costNano,
        })),
        durations: durationsOf(durations!),
      }
    },

    /** The same without the parts of it: what a time is compared with. */
    async sum(tenantId: string, fromMs: number, toMs: number): Promise<SlotFigures> {
      const args = [tenantId, fromMs, toMs]
      const [ended, durations] = await db.read([
        { sql: ENDED_SQL, args },
        { sql: DURATIONS_SQL, args },
      ])
      const [row] = rowsOf<Readonly<Record<string, number | null>>>(ended!)
      return {
        groups: (['succeeded', 'failed', 'cancelled'] as const).map(status => ({
          agentName: '',
          model: null,
          status,
          code: null,
          runs: row?.[status] ?? 0,
          costNano: row?.[`${status}Nano`] ?? 0,
        })),
        durations: durationsOf(durations!),
      }
    },

    async unpriced(tenantId: string, firstDay: string, lastDay: string): Promise<number> {
      const found = await db.execute({ sql: UNPRICED_SQL, args: [tenantId, firstDay, lastDay] })
      return rowsOf<{ calls: number }>(found)[0]?.calls ?? 0
    },

    /** Of all tenants, by the status of runs, and `approvals`. */
    async openWork(): Promise<readonly OpenWork[]> {
      return rowsOf<OpenWork>(await db.execute(OPEN_WORK_SQL))
    },

    async open(tenantId: string): Promise<OpenRuns> {
      const [open, pending] = await db.read([
        { sql: OPEN_SQL, args: [tenantId] },
        { sql: PENDING_SQL, args: [tenantId] },
      ])
      const found = rowsOf<{ status: 'queued' | 'running' | 'waiting'; runs: number; oldest: number }>(open!)
      const of = (status: string) => found.find(one => one.status === status)
      return {
        queued: of('queued')?.runs ?? 0,
        running: of('running')?.runs ?? 0,
        waiting: of('waiting')?.runs ?? 0,
        approvals: rowsOf<{ pending: number }>(pending!)[0]?.pending ?? 0,
        oldestQueuedMs: of('queued')?.oldest ?? null,
      }
    },
  }
}

const durationsOf = (found: ResultSet): ReadonlyMap<number, number> =>
  new Map(rowsOf<{ bucket: number; runs: number }>(found).map(({ bucket, runs }) => [bucket, runs]))

const ENDED = 'from runs indexed by runs_ended where tenant_id = ?1 and finished_ms >= ?2 and finished_ms < ?3'

export const GROUPS_SQL = `select agent_name as agentName, model, status, error_code as code, count(*) as runs, ${nanoSum('cost_nano')} as costNano
${ENDED} group by 1, 2, 3, 4`

const sums = (['succeeded', 'failed', 'cancelled'] as const)
  .map(
    status =>
      `sum(status = '${status}') as ${status}, ${nanoSum(`iif(status = '${status}', cost_nano, 0)`)} as ${status}Nano`,
  )
  .join(', ')

/** Without groups, which would have to be sorted: an eighth of the time. */
export const ENDED_SQL = `select ${sums} ${ENDED}`

/** Cut to two digits: as many rows as there are digits, however many runs. */
export const DURATIONS_SQL = `select ms - ms % case when ms < 100 then 1 when ms < 1000 then 10 when ms < 10000 then 100 when ms < 100000 then 1000
  when ms < 1000000 then 10000 when ms < 10000000 then 100000 else 1000000 end as bucket, count(*) as runs
from (select max(0, finished_ms - started_ms) as ms ${ENDED} and status <> 'cancelled' and started_ms is not null) group by 1`

export const OPEN_SQL = `select status, count(*) as runs, min(created_ms) as oldest from runs indexed by runs_status
where tenant_id = ?1 and status in ('queued', 'running', 'waiting') group by status`

const UNPRICED_SQL = `select coalesce(sum(unpriced_calls), 0) as calls from usage_days indexed by usage_days_tenant
where tenant_id = ?1 and day between ?2 and ?3`

const PENDING_SQL = `select count(*) as pending from approvals indexed by approvals_pending where tenant_id = ?1 and status = 'pending'`

/** Looks up each tenant's open runs in an index. Without `cross join` the whole of it would be read, with every run that has ended. */
const OPEN_WORK_SQL = `select 'approvals' as what, count(*) as held, null as oldestMs from approvals where status = 'pending'
union all
select r.status, count(*), min(r.created_ms) from tenants as t
cross join runs as r indexed by runs_status on r.tenant_id = t.id and r.status in ('queued', 'running', 'waiting') group by r.status`
