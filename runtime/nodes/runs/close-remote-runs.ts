import type { InStatement } from '@libsql/client/web'
import { insertRows } from '../../../shared/sql/insert-rows.ts'
import { jsonRows, nanoPlus, nanoSum } from '../../../shared/sql/sql-values.ts'
import { finishOf } from '../../sessions/session.ts'
import { LIFE } from '../../sessions/store.ts'
import type { RemoteRun } from './remote-run.ts'

const OPEN = "status in ('queued', 'running', 'waiting')"
const HELD = `reservations where run_id = runs.id and step_id <> ''`

/** How a run ended, as it is written down. */
export interface RemoteRunEnd {
  status: 'succeeded' | 'failed' | 'cancelled'
  finishedMs: number
  errorCode?: string | undefined
  errorStep?: string | undefined
  errorMessage?: string | undefined
  reason?: string | undefined
  isolationUsed?: string | undefined
  spent?: RemoteRun['spent']
  day: string
}

/** The head of a journal, and what is proven by it. */
export interface SealedHead {
  outputHash: string
  models: readonly string[]
  node?: RemoteRun['node']
  receipt: string | undefined
  atMs: number
}

/** The last word about a run, once. */
export interface Closing {
  /** With the head of its journal, where that is known. */
  run: RemoteRun
  /** Absent where it had ended before. */
  end?: RemoteRunEnd | undefined
  /** What the events say that came with the end. */
  began?: { atMs: number; model: string | undefined; unpricedCalls: number } | undefined
  /** Absent where its node has still to seal the journal. */
  sealed?: SealedHead | undefined
}

// n of an end: run, time, status, error's code and step, reason, isolation used, tokens in and out, cost, error's message, day, start, model,
// event count, head, calls without a price.

/** Calls whose end was never told, as of a node that is lost, may have been billed. */
const UNREPORTED = `insert into usage_days (agent_id, day, model, tenant_id, agent_name, uncertain_tokens, uncertain_nano)
  select r.agent_id, n.value ->> 11, '', r.tenant_id, r.agent_name, sum(h.tokens), ${nanoSum('h.cost_nano')}
  from json_each(?) as n join runs as r on r.id = n.value ->> 0 and r.${OPEN}
    join reservations as h on h.run_id = r.id and h.step_id <> '' where true group by n.key
  on conflict (agent_id, day, model) do update set uncertain_tokens = uncertain_tokens + excluded.uncertain_tokens,
    uncertain_nano = ${nanoPlus('uncertain_nano', 'excluded.uncertain_nano')}`

const COUNTED = `insert into usage_days (agent_id, day, model, tenant_id, agent_name, ended)
  select r.agent_id, n.value ->> 11, coalesce(n.value ->> 13, r.model), r.tenant_id, r.agent_name, 1
  from json_each(?) as n join runs as r on r.id = n.value ->> 0 and r.${OPEN} where coalesce(n.value ->> 13, r.model) is not null
  on conflict (agent_id, day, model) do update set ended = ended + 1`

const ENDED = `update runs set status = n.value ->> 2, finished_ms = n.value ->> 1, updated_ms = n.value ->> 1, due_ms = null, owner = null,
    ending = null, parked = null, error_code = n.value ->> 3, error_step = n.value ->> 4, cancel_reason = n.value ->> 5,
    isolation_used = coalesce(n.value ->> 6, isolation_used), tokens_in = n.value ->> 7, tokens_out = n.value ->> 8, cost_nano = n.value ->> 9,
    started_ms = coalesce(started_ms, n.value ->> 12), model = coalesce(n.value ->> 13, model),
    event_count = coalesce(n.value ->> 14, event_count), head = coalesce(n.value ->> 15, head), unpriced_calls = unpriced_calls + (n.value ->> 16),
    uncertain_tokens = uncertain_tokens + (select coalesce(sum(tokens), 0) from ${HELD}),
    uncertain_nano = ${nanoPlus('uncertain_nano', `(select ${nanoSum('cost_nano')} from ${HELD})`)}
  from json_each(?) as n where runs.id = n.value ->> 0 and runs.${OPEN}`

const RELEASED = 'delete from reservations where run_id in (select value ->> 0 from json_each(?))'

const UNDECIDED = `update approvals set status = iif(expires_ms <= n.value ->> 1, 'expired', 'cancelled'), decided_ms = n.value ->> 1
  from json_each(?) as n where approvals.run_id = n.value ->> 0 and approvals.status = 'pending'`

const LEFT_OPEN = `update remote_runs set error_message = coalesce(n.value ->> 10, error_message), ending = null, dispatch_by_ms = null,
    input_sealed = null
  from json_each(?) as n join runs as r on r.id = n.value ->> 0 and r.finished_ms = n.value ->> 1 and r.status = n.value ->> 2
  where remote_runs.run_id = r.id`

// n of a head: run, output's hash, models, node's key and signature, error's message, event count, head.
const SEALED = `update remote_runs set state = 'done', head_known = 1, output_hash = n.value ->> 1, models = n.value ->> 2,
    node_key = n.value ->> 3, node_signature = n.value ->> 4, error_message = coalesce(n.value ->> 5, error_message),
    event_seq = n.value ->> 6, tip = n.value ->> 7, ending = null, dispatch_by_ms = null, input_sealed = null
  from json_each(?) as n where remote_runs.run_id = n.value ->> 0`

const HEADS = `update runs set event_count = n.value ->> 6, head = n.value ->> 7 from json_each(?) as n where runs.id = n.value ->> 0`

const insertReceipts = insertRows(
  'receipts',
  { run_id: 'text', tenant_id: 'text', issued_ms: 'integer', envelope: 'text' },
  { after: 'on conflict do nothing' },
)

/**
 * Writes the ends of runs and the heads of their journals, each once, however many there are. For a transaction that fails where a run is not
 * any more as it was when that was decided.
 */
export function closeRemoteRuns(closings: readonly Closing[]): InStatement[] {
  const ends = closings.flatMap(({ run, end, began, sealed }) => (end ? [endRow(run, end, began, sealed)] : []))
  const open = closings.flatMap(({ run, end, sealed }) => (end && !sealed ? [endRow(run, end)] : []))
  const heads = closings.flatMap(({ run, end, sealed }) => (sealed ? [headRow(run, sealed, end)] : []))
  const late = closings.flatMap(({ run, end, sealed }) => (sealed && !end ? [headRow(run, sealed)] : []))
  const receipts = closings.flatMap(({ run, sealed }) =>
    sealed?.receipt === undefined
      ? []
      : [{ run_id: run.id, tenant_id: run.tenantId, issued_ms: sealed.atMs, envelope: sealed.receipt }],
  )
  return [
    ...forEach([UNREPORTED, COUNTED, ENDED, RELEASED, UNDECIDED], ends),
    ...forEach([LEFT_OPEN], open),
    ...forEach([SEALED], heads),
    ...forEach([HEADS], late),
    ...insertReceipts.statements(receipts),
    ...closings.flatMap(({ run, end }) =>
      end === undefined || run.sessionId === undefined ? [] : endOfTurn(run, run.sessionId, end),
    ),
  ]
}

function forEach(texts: readonly string[], rows: readonly unknown[][]): InStatement[] {
  if (rows.length === 0) return []
  const args = [jsonRows(rows)]
  return texts.map(sql => ({ sql, args }))
}

function endRow(run: RemoteRun, end: RemoteRunEnd, began?: Closing['began'], sealed?: SealedHead): unknown[] {
  const { spent = run.spent } = end
  return [
    ...[run.id, end.finishedMs, end.status, end.errorCode ?? null, end.errorStep ?? null, end.reason ?? null],
    ...[end.isolationUsed ?? null, spent.tokensIn, spent.tokensOut, spent.costNano, end.errorMessage ?? null, end.day],
    ...[began?.atMs ?? null, began?.model ?? null, sealed ? run.eventSeq : null, sealed ? run.tip : null],
    began?.unpricedCalls ?? 0,
  ]
}

function headRow(run: RemoteRun, { outputHash, models, node }: SealedHead, end?: RemoteRunEnd): unknown[] {
  return [
    ...[run.id, outputHash, JSON.stringify(models), node?.publicKey ?? null, node?.signature ?? null],
    ...[end?.errorMessage ?? null, run.eventSeq, run.tip],
  ]
}

/** What the end of a turn on a node means for its session here: all but what was said. */
function endOfTurn(
  { id, epoch, spent: known }: RemoteRun,
  sessionId: string,
  { status, errorCode, finishedMs, spent = known }: RemoteRunEnd,
): InStatement[] {
  const own = `exists (select 1 from runs where id = ?1 and finished_ms = ?2 and status = ?3)`
  const unpriced = '(select unpriced_calls from runs where id = ?1)'
  const counts = [spent.tokensIn, spent.tokensOut, spent.costNano]
  const turn = finishOf(status, errorCode) === undefined ? 'failed' : 'completed'
  return [
    {
      sql: `update turns set status = ?9, ended_ms = ?2,
          tokens_in = ?5, tokens_out = ?6, cost_nano = ?7, unpriced_calls = ${unpriced}, event_id = iif(exists (select 1 from sessions where id = ?4
            and status = 'processing' and turn_id = ?1), base + ?8, null)
        where run_id = ?1 and ${own}`,
      args: [id, finishedMs, status, sessionId, ...counts, epoch * LIFE, turn],
    },
    {
      sql: `update sessions set last_event = iif(status = 'processing',
            max(last_event, (select base + ?8 from turns where run_id = ?1)), last_event),
          status = iif(status = 'processing', 'active', status), turn_id = null, updated_ms = ?2,
          tokens_in = tokens_in + ?5, tokens_out = tokens_out + ?6, cost_nano = ${nanoPlus('cost_nano', '?7')},
          unpriced_calls = unpriced_calls + ${unpriced}
        where id = ?4 and turn_id = ?1 and ${own}`,
      args: [id, finishedMs, status, sessionId, ...counts, epoch * LIFE],
    },
  ]
}
