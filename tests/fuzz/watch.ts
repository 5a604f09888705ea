import type { Db } from '../../shared/sql/db.ts'

/** What the contract's table lets a run do (docs/spec/runtime.md §4); a status that is no key is terminal. */
const RUN_MOVES: Record<string, readonly string[]> = {
  queued: ['running', 'failed', 'cancelled'],
  running: ['waiting', 'succeeded', 'failed', 'cancelled'],
  waiting: ['running', 'failed', 'cancelled'],
}
const SESSION_MOVES: Record<string, readonly string[]> = {
  active: ['processing', 'stopped'],
  processing: ['active', 'stopped'],
}
const APPROVAL_MOVES: Record<string, readonly string[]> = { pending: ['approved', 'rejected', 'expired', 'cancelled'] }
const MOVES: Record<string, Record<string, readonly string[]>> = {
  run: RUN_MOVES,
  session: SESSION_MOVES,
  approval: APPROVAL_MOVES,
}

const moved = (
  table: string,
  kind: string,
) => `create trigger if not exists seen_${table} after update of status on ${table}
  when old.status is not new.status
  begin insert into seen (kind, id, was, now) values ('${kind}', new.id, old.status, new.status); end`

/** Triggers write down every change inside the commit that makes it: nothing that lasts a moment is missed. */
const WATCH = [
  'create table if not exists seen (n integer primary key, kind text not null, id text not null, was text, now text)',
  moved('runs', 'run'),
  moved('sessions', 'session'),
  moved('approvals', 'approval'),
  `create trigger if not exists seen_dead after update on runs
    when old.status in ('succeeded', 'failed', 'cancelled') and (old.tokens_in, old.tokens_out, old.cost_nano, old.finished_ms,
      old.event_count, old.head, old.error_code) is not
      (new.tokens_in, new.tokens_out, new.cost_nano, new.finished_ms, new.event_count, new.head, new.error_code)
    begin insert into seen (kind, id, was, now) values ('terminal', new.id, old.status, 'written again'); end`,
  `create trigger if not exists seen_turn after insert on runs when new.session_id is not null and exists
      (select 1 from runs where session_id = new.session_id and id <> new.id and status in ('queued', 'running', 'waiting'))
    begin insert into seen (kind, id, was, now) values ('turn', new.id, new.session_id, 'beside another'); end`,
  `create trigger if not exists seen_decision after update on approvals when old.decided_ms is not null
      and (old.decision, old.decided_by, old.decided_ms) is not (new.decision, new.decided_by, new.decided_ms)
    begin insert into seen (kind, id, was, now) values ('decision', new.id, old.decision, new.decision); end`,
]

export const watch = (db: Db) => db.write(WATCH)

/** Everything that was seen and may not be. */
export async function wrongMoves(db: Db): Promise<string[]> {
  const { rows } = await db.execute('select kind, id, was, now from seen order by n')
  return rows.flatMap(({ kind, id, was, now }) =>
    MOVES[String(kind)]?.[String(was)]?.includes(String(now)) ? [] : [`${kind} ${id}: ${was} → ${now}`],
  )
}

const AT_REST: Record<string, string> = {
  'waits for nobody': `select id from runs where status = 'waiting' and not exists
    (select 1 from approvals where run_id = runs.id and status = 'pending' and expires_ms > ?1)`,
  'has an open question and does not wait': `select run_id from approvals where status = 'pending' and not exists
    (select 1 from runs where id = run_id and (status = 'waiting' or (status = 'running' and owner is not null)))`,
  'has two turns at once':
    'select session_id from turns where ended_ms is null group by session_id having count(*) > 1',
  'has a turn that began before the one before it ended': `select later.run_id from turns later join turns earlier
    on earlier.session_id = later.session_id and earlier.number = later.number - 1
    where earlier.ended_ms is null or later.created_ms < earlier.ended_ms`,
  'is processing without a turn': `select id from sessions where status = 'processing' and not exists
    (select 1 from runs where session_id = sessions.id and status in ('queued', 'running', 'waiting'))`,
  'is idle beside an open turn': `select id from sessions where status = 'active' and exists
    (select 1 from runs where session_id = sessions.id and status in ('queued', 'running', 'waiting'))`,
  'slept through a window': 'select id from schedules where enabled = 1 and due_ms <= ?1',
  'holds money after its end': `select run_id from reservations where run_id in
    (select id from runs where status in ('succeeded', 'failed', 'cancelled'))`,
}

/** What may not be once nothing moves any more. */
export async function wrongAtRest(db: Db, nowMs: number): Promise<string[]> {
  const wrong: string[] = []
  for (const [what, sql] of Object.entries(AT_REST)) {
    const { rows } = await db.execute({ sql, args: sql.includes('?1') ? [nowMs] : [] })
    for (const row of rows) wrong.push(`${row[0]} ${what}`)
  }
  return wrong
}
