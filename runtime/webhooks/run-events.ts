import type { InStatement } from '@libsql/client/web'
import type { ApprovalExpired } from '../execution/approvals.ts'
import type { ExtraStatements, Unit } from '../execution/journal/commit.ts'
import { enqueueEvent, wants } from './enqueue.ts'

const TOLD = ['succeeded', 'failed', 'cancelled', 'waiting']

// n: run, epoch, status, event's id, time. A unit that was fenced left its run in another epoch, or in another state.
const MOVED = `insert into webhook_deliveries (webhook_id, event_id, type, at_ms, data, outcome, due_ms, created_ms)
select w.id, n.value ->> 3, 'run.' || r.status, n.value ->> 4,
  json_object('runId', r.id, 'agentName', r.agent_name, 'agentVersionId', r.version_id, 'status', r.status,
    'trigger', r.trigger_kind, 'scheduleId', r.schedule_id, 'sessionId', r.session_id, 'parentRunId', r.parent_run_id,
    'approvalId', iif(r.status = 'waiting', (select a.id from approvals as a where a.run_id = r.id and a.status = 'pending'
      order by a.created_ms desc, a.id desc limit 1), null),
    'errorCode', r.error_code, 'tokensIn', r.tokens_in, 'tokensOut', r.tokens_out, 'costNano', r.cost_nano),
  'pending', n.value ->> 4, n.value ->> 4
from json_each(?) as n
join runs as r on r.id = n.value ->> 0 and r.epoch = n.value ->> 1 and r.status = n.value ->> 2
join webhooks as w on w.tenant_id = r.tenant_id
where ${wants("'run.' || r.status")}`

// n: run, event's place, its hash, event's id, time, kind, observed, limit
const ANOMALIES = `insert into webhook_deliveries (webhook_id, event_id, type, at_ms, data, outcome, due_ms, created_ms)
select w.id, n.value ->> 3, 'anomaly.detected', n.value ->> 4,
  json_object('runId', r.id, 'agentName', r.agent_name, 'kind', n.value ->> 5, 'observed', n.value ->> 6,
    'limit', n.value ->> 7),
  'pending', n.value ->> 4, n.value ->> 4
from json_each(?) as n
join events as e on e.run_id = n.value ->> 0 and e.seq = n.value ->> 1 and e.hash = n.value ->> 2
join runs as r on r.id = e.run_id
join webhooks as w on w.tenant_id = r.tenant_id
where ${wants("'anomaly.detected'")}`

/** The webhook deliveries of runs, committed with the very change that they report. */
export function runEvents(newId: () => string): { extraStatements: ExtraStatements; approvalExpired: ApprovalExpired } {
  return {
    extraStatements(units) {
      const statements: InStatement[] = []
      const moved = units.flatMap(unit =>
        unit.transition && TOLD.includes(unit.transition.status)
          ? [[unit.runId, unit.epoch, unit.transition.status, newId(), unit.atMs]]
          : [],
      )
      if (moved.length > 0) statements.push({ sql: MOVED, args: [JSON.stringify(moved)] })
      const found = units.flatMap(unit => anomaliesOf(unit, newId))
      if (found.length > 0) statements.push({ sql: ANOMALIES, args: [JSON.stringify(found)] })
      return statements
    },
    approvalExpired: ({ id, stepId, run }, nowMs) => [
      enqueueEvent(newId, {
        tenantId: run.tenantId,
        type: 'approval.expired',
        atMs: nowMs,
        data: { approvalId: id, runId: run.id, agentName: run.agentName, stepId },
        when: {
          sql: "exists (select 1 from approvals where id = ? and status = 'expired' and decided_ms = ?)",
          args: [id, nowMs],
        },
      }),
    ],
  }
}

function anomaliesOf({ runId, events, atMs }: Unit, newId: () => string): unknown[][] {
  return events.flatMap(({ entry: { kind, seq, hash, payload } }) =>
    kind === 'anomaly_detected'
      ? [[runId, seq, hash, newId(), atMs, payload.kind, payload.observed, payload.limit]]
      : [],
  )
}
