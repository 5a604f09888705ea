import type { InStatement } from '@libsql/client/web'
import { insertRows } from '../../shared/sql/insert-rows.ts'
import { jsonRows } from '../../shared/sql/sql-values.ts'
import type { WindowFate } from './decide-windows.ts'

export interface ClaimedWindow extends WindowFate {
  /** The run that it starts. */
  runId?: string
  /** It waited as `queued` and has a row already. */
  waited: boolean
}

/** What a scan decided about one schedule, on the revision that it read. */
export interface Claim {
  scheduleId: string
  revision: number
  windows: readonly ClaimedWindow[]
  dueMs: number | null
  pendingMs: number | null
  lastError: string | null
}

const CURRENT = 'exists (select 1 from schedules where id = new.schedule_id and revision = new.revision)'
const insertFires = insertRows(
  'schedule_fires',
  {
    schedule_id: 'text',
    window_ms: 'integer',
    fired_ms: 'integer',
    outcome: 'text',
    run_id: 'text',
    reason: 'text',
  },
  {
    given: { revision: 'integer' },
    where: CURRENT,
    after: 'on conflict do nothing returning schedule_id, window_ms',
  },
)

// n: schedule, revision, window, outcome, run, reason, time
const RELEASE = `update schedule_fires set
  outcome = n.value ->> 3, run_id = n.value ->> 4, reason = n.value ->> 5, fired_ms = n.value ->> 6
from json_each(?) as n
where schedule_fires.schedule_id = n.value ->> 0 and schedule_fires.window_ms = n.value ->> 2 and outcome = 'queued'
  and exists (select 1 from schedules where id = n.value ->> 0 and revision = n.value ->> 1)
returning schedule_id, window_ms`

// n: schedule, revision, due, pending, error, last window's time, last run
const SETTLE = `update schedules set
  due_ms = n.value ->> 2, pending_ms = n.value ->> 3, last_error = n.value ->> 4,
  last_fired_ms = coalesce(n.value ->> 5, last_fired_ms),
  last_run_id = coalesce((select id from runs where id = n.value ->> 6), last_run_id), revision = revision + 1
from json_each(?) as n
where schedules.id = n.value ->> 0 and schedules.revision = n.value ->> 1`

/**
 * The statements that take the windows of many schedules: a schedule that was changed or fired elsewhere since it was read is
 * left alone, and so is a window that has a row. Between `take` and `settle` stand those that create the runs.
 */
export function claimStatements(
  claims: readonly Claim[],
  nowMs: number,
): { take: InStatement[]; settle: InStatement[] } {
  const all = claims.flatMap(({ scheduleId, revision, windows }) =>
    windows.map(window => ({ scheduleId, revision, ...window })),
  )
  const waited = all.filter(window => window.waited)
  return {
    take: [
      insertFires.statement(
        all
          .filter(window => !window.waited)
          .map(({ scheduleId, revision, windowMs, outcome, runId = null, reason = null }) => ({
            schedule_id: scheduleId,
            window_ms: windowMs,
            fired_ms: nowMs,
            outcome,
            run_id: runId,
            reason,
            revision,
          })),
      ),
      {
        sql: RELEASE,
        args: [
          jsonRows(
            waited.map(({ scheduleId, revision, windowMs, outcome, runId = null, reason = null }) => [
              ...[scheduleId, revision, windowMs, outcome, runId, reason, nowMs],
            ]),
          ),
        ],
      },
    ],
    settle: [
      {
        sql: SETTLE,
        args: [
          jsonRows(
            claims.map(({ scheduleId, revision, windows, dueMs, pendingMs, lastError }) => {
              const started = windows.findLast(({ outcome }) => outcome === 'started')
              return [scheduleId, revision, dueMs, pendingMs, lastError, started ? nowMs : null, started?.runId ?? null]
            }),
          ),
        ],
      },
    ],
  }
}
