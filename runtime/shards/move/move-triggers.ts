import { MOVING } from '../../../shared/sql/store-unavailable.ts'
import { FRAMES, MOVED, type MovedTable, tenantOf } from './moved-tables.ts'

/**
 * What a shard has while tenants leave it. `shard_moves` are these tenants: `copy` while what they change is noted in `shard_changes`, `fenced`
 * while nothing of theirs may be changed any more, and `forget` while the old copy is deleted. `shard_due` is when their rows were due: a row
 * that is not due is taken up by no engine.
 */
const TABLES = `create table if not exists shard_moves (
  tenant_id text primary key,
  phase text not null check (phase in ('copy', 'fenced', 'forget'))
) strict, without rowid;
create table if not exists shard_changes (
  id integer primary key autoincrement,
  tenant_id text not null,
  tab text not null,
  key text not null,
  made integer not null
) strict;
create table if not exists shard_due (
  tenant_id text not null,
  tab text not null,
  key text not null,
  due_ms integer,
  other_ms integer,
  mark integer not null,
  primary key (tenant_id, tab, key)
) strict, without rowid;`

const OPS = ['insert', 'update', 'delete'] as const
type Op = (typeof OPS)[number]

function noting(table: MovedTable, op: Op): string {
  const row = op === 'delete' ? 'old' : 'new'
  const key = `json_array(${table.key.map(name => `${row}.${name}`).join(', ')})`
  return `create trigger if not exists shard_note_${table.table}_${op} after ${op} on ${table.table}
when ${tenantOf(table, row)} in (select tenant_id from shard_moves) begin
  insert into shard_changes (tenant_id, tab, key, made) values (${tenantOf(table, row)}, '${table.table}', ${key}, ${op === 'insert' ? 1 : 0});
end;`
}

/** What the service writes by itself, and what it may go on without; the copy at the new place has it. */
const UNHEARD = new Set(['audit_log', 'audit_heads', 'audit_intents', 'nodes', 'node_tokens', 'node_nonces', 'logins'])

function fencing(table: MovedTable, op: Op): string {
  const row = op === 'insert' ? 'new' : 'old'
  return `create trigger if not exists shard_fence_${table.table}_${op} before ${op} on ${table.table}
when exists (select 1 from shard_moves where tenant_id = ${tenantOf(table, row)} and phase = 'fenced') begin
  select ${refusal(table.table, op)};
end;`
}

function refusal(table: string, op: Op): string {
  const abort = `raise(abort, '${MOVING}')`
  // Sweeps delete rows of many tenants in one statement: those that are fenced stay.
  if (op === 'delete' || UNHEARD.has(table)) return 'raise(ignore)'
  if (table === 'api_keys' && op === 'update') {
    return `case when new.used_ms is not old.used_ms and new.revoked_ms is old.revoked_ms then raise(ignore) else ${abort} end`
  }
  return abort
}

const GUARDED: readonly MovedTable[] = [
  ...MOVED,
  { table: FRAMES, key: ['id'], tenant: { above: 'nodes', column: 'node_id' } },
]

/** Lets a shard note what its leaving tenants change, and refuse it when they are fenced. It concerns no other tenant. */
export const MAKE_READY: string = [
  'begin immediate;',
  TABLES,
  ...MOVED.flatMap(table => OPS.map(op => noting(table, op))),
  ...GUARDED.flatMap(table => OPS.map(op => fencing(table, op))),
  'commit;',
].join('\n')

/** Takes all of it away again, once no tenant is leaving. */
export const TAKE_DOWN: string = [
  'begin immediate;',
  ...MOVED.flatMap(({ table }) => OPS.map(op => `drop trigger if exists shard_note_${table}_${op};`)),
  ...GUARDED.flatMap(({ table }) => OPS.map(op => `drop trigger if exists shard_fence_${table}_${op};`)),
  'drop table if exists shard_changes;',
  'drop table if exists shard_due;',
  'drop table if exists shard_moves;',
  'commit;',
].join('\n')
