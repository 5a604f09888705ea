import type { InStatement } from '@libsql/client/web'
import type { ApprovalExpired } from '../execution/approvals.ts'
import type { ExtraStatements, Unit } from '../execution/journal/commit.ts'
import { enqueueEvent, subscribesSql } from './enqueue.ts'

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
where ${subscribesSql("'run.' || r.status")}`

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
where ${subscribesSql("'anomaly.detected'")}`

// n: run, event's place, event's id, time. Of a run on a node, of which what the control plane has is before the event.
const FAR_ANOMALIES = `insert into webhook_deliveries (webhook_id, event_id, type, at_ms, data, outcome, due_ms, created_ms)
select w.id, n.value ->> 2, 'anomaly.detected', n.value ->> 3, json_object('runId', r.id, 'agentName', r.agent_name),
  'pending', n.value ->> 3, n.value ->> 3
from json_each(?) as n
join remote_runs as f on f.run_id = n.value ->> 0 and f.event_seq < n.value ->> 1
join runs as r on r.id = f.run_id
join webhooks as w on w.tenant_id = r.tenant_id
where ${subscribesSql("'anomaly.detected'")}`

// n: run, step, time. A question has one end, and so one event, whose id is its own.
const FAR_EXPIRED = `insert into webhook_deliveries (webhook_id, event_id, type, at_ms, data, outcome, due_ms, created_ms)
select w.id, a.id, 'approval.expired', n.value ->> 2,
  json_object('approvalId', a.id, 'runId', a.run_id, 'agentName', a.agent_name, 'stepId', a.step_id),
  'pending', n.value ->> 2, n.value ->> 2
from json_each(?) as n
join approvals as a on a.run_id = n.value ->> 0 and a.step_id = n.value ->> 1 and a.status = 'pending'
  and a.expires_ms <= n.value ->> 2
join webhooks as w on w.tenant_id = a.tenant_id
where ${subscribesSql("'approval.expired'")}`

/** The deliveries of what nodes report. Each stands before the statements that store the report. */
export type RemoteRunEvents = ReturnType<typeof remoteRunEvents>

export const remoteRunEvents = (newId: () => string) => ({
  anomalies: (found: readonly { runId: string; seq: number; atMs: number }[]) =>
    ofEach(
      FAR_ANOMALIES,
      found.map(({ runId, seq, atMs }) => [runId, seq, newId(), atMs]),
    ),

  /** Of steps that asked a human and are over: nothing where a decision had come. */
  expired: (answered: readonly { runId: string; stepId: string; atMs: number }[]) =>
    ofEach(
      FAR_EXPIRED,
      answered.map(({ runId, stepId, atMs }) => [runId, stepId, atMs]),
    ),
})

const ofEach = (sql: string, rows: readonly unknown[][]): InStatement[] =>
  rows.length === 0 ? [] : [{ sql, args: [JSON.stringify(rows)] }]

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
