import type { InStatement } from '@libsql/client/web'
import type { Histogram } from '../../../shared/metrics/metrics.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { waitingForStore } from '../../../shared/sql/db-fault.ts'
import { type GroupCommit, groupCommit } from '../../../shared/sql/group-commit.ts'
import { insertRows } from '../../../shared/sql/insert-rows.ts'
import { jsonRows, nanoPlus } from '../../../shared/sql/sql-values.ts'
import { type Records, sealMaybe } from '../../vault/records.ts'
import { POISONED } from '../claim-statement.ts'
import type { Committed, ExtraStatements, Unit } from './commit.ts'

/** The owner of an older epoch writes nothing, whatever it believes about itself. */
const owned = "exists (select 1 from runs where id = new.run_id and epoch = new.epoch and status = 'running')"

const insertEvents = insertRows(
  'events',
  { run_id: 'text', seq: 'integer', hash: 'text', body: 'text' },
  { given: { epoch: 'integer' }, where: owned },
)

const insertBlobs = insertRows(
  'blobs',
  { run_id: 'text', sha256: 'text', media_type: 'text', content: 'blob', sealed: 'text' },
  { given: { epoch: 'integer' }, where: owned, after: 'on conflict do nothing' },
)

const insertApprovals = insertRows(
  'approvals',
  {
    id: 'text',
    tenant_id: 'text',
    run_id: 'text',
    agent_name: 'text',
    step_id: 'text',
    round: 'integer',
    status: 'text',
    reason: 'text',
    prompt: 'text',
    action: 'text',
    created_ms: 'integer',
    expires_ms: 'integer',
  },
  { given: { epoch: 'integer' }, where: owned, after: 'on conflict (run_id, step_id, round) do nothing' },
)

const insertReceipts = insertRows(
  'receipts',
  { run_id: 'text', tenant_id: 'text', issued_ms: 'integer', envelope: 'text' },
  { given: { epoch: 'integer' }, where: owned, after: 'on conflict do nothing' },
)

/**
 * Sets runs aside that this process is ahead of: a server that was restored, or that lost its last commits, lacks events which it had confirmed, or knows an
 * older epoch. What comes behind them would leave a hole in the journal, and a receipt over it that does not verify.
 */
const TORN = `update runs set status = 'waiting', parked = '${POISONED}', parked_until_ms = null, owner = null,
  epoch = max(epoch, n.value ->> 1) + 1, due_ms = null, updated_ms = n.value ->> 2
from json_each(?) as n
where runs.id = n.value ->> 0 and (
  (runs.epoch < n.value ->> 1 and runs.status in ('queued', 'running', 'waiting'))
  or (runs.epoch = n.value ->> 1 and runs.status = 'running' and n.value ->> 3 > 0
    and not exists (select 1 from events where run_id = runs.id and seq = n.value ->> 3 and hash = n.value ->> 4)))
returning runs.id`

const FENCED = `select value ->> 0 as place from json_each(?) as unit
where not exists (select 1 from runs where id = unit.value ->> 1 and epoch = unit.value ->> 2 and status = 'running')`

/** The same on a server: a unit whose last event is not there ends the transaction with an error, since an id is no JSON. */
const FENCED_OR_TORN = `select value ->> 0 as place from json_each(?) as unit
where not exists (select 1 from runs where id = unit.value ->> 1 and epoch = unit.value ->> 2 and status = 'running' and (unit.value ->> 3 = 0
  or exists (select 1 from events where run_id = runs.id and seq = unit.value ->> 3 and hash = unit.value ->> 4) or json(id)))`

const isTorn = (error: unknown): boolean => error instanceof Error && /malformed JSON/.test(error.message)

const COUNT = `update runs set
  tokens_in = tokens_in + (n.value ->> 2), tokens_out = tokens_out + (n.value ->> 3), cost_nano = ${nanoPlus('cost_nano', '(n.value ->> 4)')},
  ran_ms = ran_ms + (n.value ->> 5), updated_ms = n.value ->> 6, model = coalesce(n.value ->> 7, model),
  isolation_used = coalesce(n.value ->> 8, isolation_used), input_nano = ${nanoPlus('input_nano', '(n.value ->> 9)')},
  cache_read_nano = ${nanoPlus('cache_read_nano', '(n.value ->> 10)')}, cache_write_nano = ${nanoPlus('cache_write_nano', '(n.value ->> 11)')},
  output_nano = ${nanoPlus('output_nano', '(n.value ->> 12)')}, cache_read_tokens = cache_read_tokens + (n.value ->> 13),
  cache_write_tokens = cache_write_tokens + (n.value ->> 14), unpriced_calls = unpriced_calls + (n.value ->> 15),
  event_count = n.value ->> 16
from json_each(?) as n
where runs.id = n.value ->> 0 and runs.epoch = n.value ->> 1 and runs.status = 'running'`

/** What was spent, by agent, day and model; it stays when the run is deleted. */
const USAGE = `insert into usage_days (agent_id, day, model, tenant_id, agent_name, tokens_in, tokens_out, cost_nano, unpriced_calls)
select r.agent_id, n.value ->> 2, n.value ->> 3, r.tenant_id, r.agent_name, n.value ->> 4, n.value ->> 5, n.value ->> 6, n.value ->> 7
from json_each(?) as n join runs as r on r.id = n.value ->> 0
where r.epoch = n.value ->> 1 and r.status = 'running'
on conflict (agent_id, day, model) do update set tokens_in = tokens_in + excluded.tokens_in,
  tokens_out = tokens_out + excluded.tokens_out, cost_nano = ${nanoPlus('cost_nano', 'excluded.cost_nano')}, unpriced_calls = unpriced_calls + excluded.unpriced_calls`

/** A run counts once more for the model that answered last. */
const ENDED = `insert into usage_days (agent_id, day, model, tenant_id, agent_name, ended)
select r.agent_id, n.value ->> 2, r.model, r.tenant_id, r.agent_name, 1
from json_each(?) as n join runs as r on r.id = n.value ->> 0
where r.epoch = n.value ->> 1 and r.status = 'running' and r.model is not null
on conflict (agent_id, day, model) do update set ended = ended + 1`

/** An ended run holds nothing any more. */
const FREE = `delete from reservations where run_id in (select r.id
from json_each(?) as n join runs as r on r.id = n.value ->> 0
where r.epoch = n.value ->> 1 and r.status = 'running')`

/** Nor does it ask a person: a question that cannot be answered any more is not pending. */
const UNASK = `update approvals set status = case when expires_ms <= n.value ->> 3 then 'expired' else 'cancelled' end,
  decided_ms = n.value ->> 3
from json_each(?) as n join runs as r on r.id = n.value ->> 0
where approvals.run_id = r.id and approvals.status = 'pending' and r.epoch = n.value ->> 1 and r.status = 'running'`

const DATA = `update run_data set output = n.value ->> 2, error_message = n.value ->> 3
from json_each(?) as n
where run_data.run_id = n.value ->> 0
  and exists (select 1 from runs where id = n.value ->> 0 and epoch = n.value ->> 1 and status = 'running')`

/** As JSON, a text is held several times more, here and in the engine. */
const LARGE_OUTPUT = 64 * 1024
const LARGE_DATA = `update run_data set output = ?3, error_message = ?4
where run_id = ?1 and exists (select 1 from runs where id = ?1 and epoch = ?2 and status = 'running')`

const DROPPED = `select r.id from json_each(?) as n join runs as r on r.id = n.value ->> 0
where r.epoch = n.value ->> 1 and r.status = 'running'`

const DROP = [
  `delete from blobs where run_id in (${DROPPED})`,
  `update run_data set input = '' where run_id in (${DROPPED}
    and not exists (select 1 from sessions where id = r.session_id and status <> 'stopped'))`,
]

/** Last of a commit: it takes away the condition that the statements before it stand on. */
const MOVE = `update runs set
  status = n.value ->> 2, due_ms = n.value ->> 3, owner = null, parked = n.value ->> 4, parked_until_ms = n.value ->> 5,
  updated_ms = n.value ->> 6, finished_ms = n.value ->> 7, error_code = n.value ->> 8, error_step = n.value ->> 9,
  event_count = n.value ->> 10, head = n.value ->> 11,
  cancel_reason = coalesce(n.value ->> 12, cancel_reason)
from json_each(?) as n
where runs.id = n.value ->> 0 and runs.epoch = n.value ->> 1 and runs.status = 'running'`

/** A parent that waits for its children is due when one of them ends. */
const WAKE = `update runs set due_ms = 0
where owner is null and status in ('running', 'waiting') and id in (
  select c.parent_run_id from json_each(?) as n join runs as c on c.id = n.value where c.parent_run_id is not null)`

/** What a run waits for may have come after it looked and before it released the lease; its sender found an owner and woke no run. */
const CAME = `update runs set due_ms = 0
from json_each(?) as n
where runs.id = n.value ->> 0 and runs.epoch = n.value ->> 1 and runs.owner is null
  and runs.status in ('running', 'waiting') and (
    exists (select 1 from json_each(n.value -> 2) as w join runs as c on c.id = w.value
      where c.status in ('succeeded', 'failed', 'cancelled'))
    or exists (select 1 from json_each(n.value -> 2) as w join tunnel_children as c on c.child_id = w.value
      where c.error_code is not null)
    or exists (select 1 from json_each(n.value -> 3) as w join signals as s on s.run_id = runs.id and s.name = w.value)
    or exists (select 1 from json_each(n.value -> 4) as w join approvals as a on a.id = w.value
      where a.status <> 'pending'))`

export interface JournalWriterDeps {
  /** The calendar day that usage is counted by. */
  dayOf: (ms: number) => string
  extraStatements?: ExtraStatements | undefined
  records: Records
  monotonic: () => number
  appendSeconds: Pick<Histogram, 'observe'>
  /** These were set aside: the store has lost what it had confirmed of them. */
  torn?: ((runIds: readonly string[]) => void) | undefined
  /** Looked at by every commit that lets runs go: when the first of all runs is due. */
  firstDue: { statement: () => InStatement; seen: (dueMs: number | undefined) => void }
}

export interface JournalWriter extends Pick<GroupCommit<Unit, Committed>, 'append' | 'close'> {
  /** From now on no store is waited for. */
  waitNoMore(): void
}

/**
 * The one writer of journals in a process. Units of different runs that arrive while a commit is in flight share the next
 * one; a run has at most one unit in flight (`run-journal.ts`), so a refused unit never leaves a hole behind it.
 *
 * A store that is away or has no room is waited for: what a unit says was paid for, and would be asked for again.
 */
export function journalWriter(db: Db, deps: JournalWriterDeps): JournalWriter {
  let waits = true
  const group = groupCommit<Unit, Committed>({
    async write(units) {
      const began = deps.monotonic()
      const results = await commitOrSetAside(db, deps, units)
      deps.appendSeconds.observe((deps.monotonic() - began) / 1000)
      return results
    },
    maxRows: 256,
    weigh: weightOf,
    maxWeight: 8 * 1024 * 1024,
  })
  return {
    append: unit =>
      waitingForStore(
        // What it did not answer it may have done.
        async isAgain => (isAgain && (await isKept(db, deps, unit)) ? 'kept' : group.append(unit)),
        () => waits,
      ),
    close: group.close,
    waitNoMore() {
      waits = false
    },
  }
}

/** The output of a run that ends is a row of its own, and so is a large one of a step. */
function weightOf({ events, blobs, transition }: Unit): number {
  const output = transition?.finished?.output.length ?? 0
  const beside = blobs.reduce((sum, { content }) => sum + content.length, output)
  return events.reduce((sum, event) => sum + event.body.length, beside)
}

/** One without an event changes nothing when it is written once more. */
async function isKept(db: Db, { firstDue }: JournalWriterDeps, { runId, events }: Unit): Promise<boolean> {
  const last = events.at(-1)?.entry
  if (last === undefined) return false
  const args = [runId, last.seq, last.hash]
  const [found, due] = await db.read([
    { sql: 'select 1 from events where run_id = ? and seq = ? and hash = ?', args },
    firstDue.statement(),
  ])
  firstDue.seen(rowsOf<{ due_ms: number }>(due!)[0]?.due_ms)
  return found!.rows.length > 0
}

/** On a server, which may go back in time under its clients. A file cannot: its guard refuses one that was replaced. */
async function commitOrSetAside(db: Db, deps: JournalWriterDeps, units: readonly Unit[]): Promise<Committed[]> {
  if (db.kind !== 'remote') return commit(db, deps, units)
  const setAside = async (): Promise<boolean> => {
    const held = json(units, ({ runId, epoch, atMs, after }) => [runId, epoch, atMs, after.seq, after.hash])
    const [lost] = await db.write([{ sql: TORN, args: [held] }])
    const ids = rowsOf<{ id: string }>(lost!).map(({ id }) => id)
    if (ids.length > 0) deps.torn?.(ids)
    return ids.length > 0
  }
  try {
    const results = await commit(db, deps, units)
    if (results.includes('fenced')) await setAside()
    return results
  } catch (error) {
    if (!isTorn(error) || !(await setAside())) throw error
    return commit(db, deps, units)
  }
}

async function commit(
  db: Db,
  { dayOf, records, extraStatements = () => [], firstDue }: JournalWriterDeps,
  units: readonly Unit[],
): Promise<Committed[]> {
  const owners = json(units, ({ runId, epoch, after }, at) => [at, runId, epoch, after.seq, after.hash])
  const statements: InStatement[] = [{ sql: db.kind === 'remote' ? FENCED_OR_TORN : FENCED, args: [owners] }]
  statements.push(...insertEvents.statements(eventRows(units, records)))
  statements.push(...insertBlobs.statements(blobRows(units, records)))
  statements.push(...insertApprovals.statements(approvalRows(units, records)))
  for (const unit of units) statements.push(...unit.extra, ...(unit.transition?.finished?.also ?? []))
  const counted = units.filter(changesCounters)
  if (counted.length > 0) {
    statements.push({
      sql: COUNT,
      args: [
        json(counted, ({ runId, epoch, spent, parts, ranMs, atMs, model, isolationUsed, seq }) => [
          ...[runId, epoch, spent.tokensIn, spent.tokensOut, spent.costNano, Math.round(ranMs), atMs],
          ...[model ?? null, isolationUsed ?? null, parts.inputNano, parts.cacheReadNano, parts.cacheWriteNano],
          ...[parts.outputNano, parts.cacheReadTokens, parts.cacheWriteTokens, parts.unpricedCalls, seq],
        ]),
      ],
    })
  }
  const paid = units.filter(({ spent }) => spent.tokensIn + spent.tokensOut + spent.costNano > 0)
  if (paid.length > 0) {
    statements.push({
      sql: USAGE,
      args: [
        json(paid, ({ runId, epoch, atMs, model, spent: { tokensIn, tokensOut, costNano }, parts }) => [
          ...[runId, epoch, dayOf(atMs), model ?? '', tokensIn, tokensOut, costNano, parts.unpricedCalls],
        ]),
      ],
    })
  }
  const moved = units.flatMap(unit => (unit.transition ? [{ ...unit, transition: unit.transition }] : []))
  const ended = moved.flatMap(({ runId, epoch, atMs, transition: { finished } }) =>
    finished ? [{ runId, epoch, day: dayOf(atMs), atMs, finished }] : [],
  )
  const receipts = ended.flatMap(({ runId, epoch, atMs, finished: { receipt } }) =>
    receipt ? [{ run_id: runId, tenant_id: receipt.tenantId, issued_ms: atMs, envelope: receipt.envelope, epoch }] : [],
  )
  statements.push(...insertReceipts.statements(receipts))
  if (ended.length > 0) {
    const data = ended.map(({ runId, epoch, finished }) => [
      ...[runId, epoch, records.seal(finished.output, { record: runId, field: 'output' })],
      sealMaybe(records, finished.error?.message ?? null, { record: runId, field: 'error' }),
    ])
    const isLarge = (row: (typeof data)[number]) => String(row[2]).length > LARGE_OUTPUT
    const small = data.filter(row => !isLarge(row))
    if (small.length > 0) statements.push({ sql: DATA, args: [jsonRows(small)] })
    statements.push(...data.filter(isLarge).map(args => ({ sql: LARGE_DATA, args })))
    const which = json(ended, ({ runId, epoch, day, atMs }) => [runId, epoch, day, atMs])
    statements.push(...[ENDED, FREE].map(sql => ({ sql, args: [which] })))
    if (ended.some(({ finished }) => finished.asked)) statements.push({ sql: UNASK, args: [which] })
  }
  const dropped = ended.filter(({ finished }) => finished.drop)
  if (dropped.length > 0) {
    const which = json(dropped, ({ runId, epoch }) => [runId, epoch])
    statements.push(...DROP.map(sql => ({ sql, args: [which] })))
  }
  if (moved.length > 0) {
    statements.push({
      sql: MOVE,
      args: [
        json(moved, ({ runId, epoch, seq, atMs, transition: { status, dueMs, parked, finished } }) => [
          ...[runId, epoch, status, dueMs, parked?.reason ?? null, parked?.untilMs ?? null, atMs],
          ...[finished ? atMs : null, finished?.error?.code ?? null, finished?.error?.stepId ?? null],
          ...[seq, finished?.head ?? null, finished?.reason ?? null],
        ]),
      ],
    })
  }
  const waiting = moved.flatMap(({ runId, epoch, transition: { awaited } }) =>
    awaited ? [[runId, epoch, awaited.children, awaited.signals, awaited.approvals]] : [],
  )
  if (waiting.length > 0) statements.push({ sql: CAME, args: [jsonRows(waiting)] })
  const children = ended.filter(({ finished }) => finished.child)
  if (children.length > 0) statements.push({ sql: WAKE, args: [json(children, ({ runId }) => runId)] })
  statements.push(...extraStatements(units))
  if (moved.length > 0) statements.push(firstDue.statement())
  const [fenced, ...others] = await db.write(statements)
  if (moved.length > 0) firstDue.seen(rowsOf<{ due_ms: number }>(others.at(-1)!)[0]?.due_ms)
  const results = units.map((): Committed => 'kept')
  for (const { place } of rowsOf<{ place: number }>(fenced!)) results[place] = 'fenced'
  return results
}

function eventRows(units: readonly Unit[], records: JournalWriterDeps['records']) {
  return units.flatMap(({ runId, epoch, events }) =>
    events.map(({ entry: { seq, hash }, body }) => ({
      run_id: runId,
      seq,
      hash,
      epoch,
      body: records.seal(body, { record: runId, field: `event ${seq}` }),
    })),
  )
}

function blobRows(units: readonly Unit[], records: JournalWriterDeps['records']) {
  return units.flatMap(({ runId, epoch, blobs }) =>
    blobs.map(({ sha256, mediaType, content }) => ({
      run_id: runId,
      sha256,
      media_type: mediaType,
      epoch,
      ...records.sealBytes(content, { record: runId, field: `blob ${sha256}` }),
    })),
  )
}

function approvalRows(units: readonly Unit[], records: JournalWriterDeps['records']) {
  return units.flatMap(({ runId, epoch, atMs, approvals }) =>
    approvals.map(one => ({
      id: one.id,
      tenant_id: one.tenantId,
      run_id: runId,
      agent_name: one.agentName,
      step_id: one.stepId,
      round: one.round,
      status: 'pending',
      reason: one.reason,
      prompt: records.seal(one.prompt, { record: runId, field: `prompt ${one.id}` }),
      action: sealMaybe(records, one.action, { record: runId, field: `action ${one.id}` }),
      created_ms: atMs,
      expires_ms: one.expiresMs,
      epoch,
    })),
  )
}

function changesCounters({ spent, model, isolationUsed, transition }: Unit): boolean {
  return (
    spent.tokensIn > 0 ||
    spent.tokensOut > 0 ||
    spent.costNano > 0 ||
    model !== undefined ||
    isolationUsed !== undefined ||
    transition !== undefined
  )
}

function json<T>(rows: readonly T[], cells: (row: T, at: number) => unknown): string {
  return jsonRows(rows.map(cells))
}
