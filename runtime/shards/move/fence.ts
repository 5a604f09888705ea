import type { InStatement } from '@libsql/client/web'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { isFailedCondition, isMissingTable, MOVING } from '../../../shared/sql/db-fault.ts'
import { FRAMES, MOVED, type MovedTable, tenantOf } from './moved-tables.ts'

type Phase = 'copy' | 'fenced' | 'forget'

/** Where a tenant stands in the shard that it leaves; undefined where it is not leaving, or nothing was made ready. */
export async function phaseOf(db: Db, tenantId: string): Promise<Phase | undefined> {
  const { rows } = await db.execute("select 1 from sqlite_master where name = 'shard_moves'")
  if (rows.length === 0) return undefined
  const found = await db.execute({ sql: 'select phase from shard_moves where tenant_id = ?', args: [tenantId] })
  return rowsOf<{ phase: Phase }>(found)[0]?.phase
}

/** From here on what the tenant changes is noted. */
export async function startChangeCapture(db: Db, tenantId: string): Promise<void> {
  const sql = "insert into shard_moves (tenant_id, phase) values (?, 'copy') on conflict do nothing"
  await db.write([...MAKE_READY, { sql, args: [tenantId] }])
}

/** What is due of a tenant, and what must be as it was when it was taken down for its time to be given back. */
const DUE: readonly { tab: string; key: string; due: string; other?: string; mark: string; whose: string }[] = [
  { tab: 'runs', key: 'id', due: 'due_ms', mark: 'epoch', whose: 'tenant_id = ?1' },
  { tab: 'schedules', key: 'id', due: 'due_ms', other: 'pending_ms', mark: 'revision', whose: 'tenant_id = ?1' },
  {
    tab: 'webhook_deliveries',
    key: 'webhook_id || char(10) || event_id',
    due: 'due_ms',
    mark: 'attempt',
    whose: 'webhook_id in (select id from webhooks where tenant_id = ?1)',
  },
  { tab: 'remote_runs', key: 'run_id', due: 'dispatch_by_ms', mark: 'epoch', whose: 'tenant_id = ?1' },
]

/**
 * In one transaction: what executes a run of the tenant has lost it, nothing of the tenant is due any more, and from then on its rows are
 * as they are. A run that was being executed is due at once where it goes, as after a process that let go of it.
 */
export async function fence(db: Db, tenantId: string): Promise<void> {
  const statements: InStatement[] = [
    `update runs set epoch = epoch + 1, owner = null, due_ms = 0, recoveries = max(recoveries - 1, 0)
      where tenant_id = ?1 and owner is not null`,
    ...DUE.flatMap(({ tab, key, due, other = 'null', mark, whose }) => {
      const any = other === 'null' ? `${due} is not null` : `(${due} is not null or ${other} is not null)`
      return [
        `insert into shard_due (tenant_id, tab, key, due_ms, other_ms, mark)
          select ?1, '${tab}', ${key}, ${due}, ${other}, ${mark} from ${tab} where ${whose} and ${any} on conflict do nothing`,
        `update ${tab} set ${due} = null${other === 'null' ? '' : `, ${other} = null`} where ${whose} and ${any}`,
      ]
    }),
    // Stands there even where nothing is due, until the new place has been given all of it.
    "insert into shard_due (tenant_id, tab, key, mark) values (?1, '', '', 0) on conflict do nothing",
    // They come again where the tenant is, and are not missed here.
    'update nodes set signed_off = 1 where tenant_id = ?1',
    "update shard_moves set phase = 'fenced' where tenant_id = ?1",
  ].map(sql => ({ sql, args: [tenantId] }))
  await db.write(statements)
}

interface Due {
  tab: string
  key: string
  due_ms: number | null
  other_ms: number | null
  mark: number
}

/** Gives rows of `to` the times that they had in `from`. A row that was changed since is left as it is. */
export async function restoreDueTimes(from: Db, to: Db, tenantId: string): Promise<void> {
  for (let after = ''; ; ) {
    const found = await from.execute({
      sql: `select tab, key, due_ms, other_ms, mark from shard_due where tenant_id = ? and tab || char(10) || key > ?
        order by tab || char(10) || key limit 500`,
      args: [tenantId, after],
    })
    const rows = rowsOf<Due>(found)
    const last = rows.at(-1)
    if (last === undefined) return
    after = `${last.tab}\n${last.key}`
    await to.write(
      DUE.flatMap(({ tab, key, due, other, mark }): InStatement[] => {
        const own = rows.filter(row => row.tab === tab)
        if (own.length === 0) return []
        const times = other === undefined ? `${due} = v.due` : `${due} = v.due, ${other} = v.other`
        const still = other === undefined ? `${due} is null` : `${due} is null and ${other} is null`
        const sql = `update ${tab} set ${times} from (select value ->> 0 as row, value ->> 1 as due, value ->> 2 as other,
            value ->> 3 as mark from json_each(?)) as v
          where ${key} = v.row and ${tab}.${mark} = v.mark and ${still}${OPEN[tab] ?? ''}`
        return [{ sql, args: [JSON.stringify(own.map(one => [one.key, one.due_ms, one.other_ms, one.mark]))] }]
      }),
    )
  }
}

/** Whether the new place has yet to be given what is due: until `clearOwed`. */
export async function isOwed(from: Db, tenantId: string): Promise<boolean> {
  const sql = 'select 1 from shard_due where tenant_id = ? limit 1'
  return (await from.execute({ sql, args: [tenantId] })).rows.length > 0
}

export async function clearOwed(from: Db, tenantId: string): Promise<void> {
  await from.execute({ sql: 'delete from shard_due where tenant_id = ?', args: [tenantId] })
}

/** What has ended meanwhile is due no more. */
const OPEN: Readonly<Record<string, string>> = {
  runs: " and status in ('queued', 'running', 'waiting') and owner is null",
  webhook_deliveries: " and outcome = 'pending'",
}

/** The tenant stays: its rows may be changed again, and are due when they were. */
export async function liftFence(db: Db, tenantId: string): Promise<void> {
  await db.execute({ sql: "update shard_moves set phase = 'copy' where tenant_id = ?", args: [tenantId] })
  await restoreDueTimes(db, db, tenantId)
  await stopChangeCapture(db, tenantId)
}

/** Lets the old copy be deleted. */
export async function openForDeletion(db: Db, tenantId: string): Promise<void> {
  await db.execute({ sql: "update shard_moves set phase = 'forget' where tenant_id = ?", args: [tenantId] })
}

/** Nothing is noted of the tenant any more; after the last one nothing reminds of moves. */
export async function stopChangeCapture(db: Db, tenantId: string): Promise<void> {
  const tables = ['shard_changes', 'shard_due', 'shard_moves']
  await db.write(tables.map(table => ({ sql: `delete from ${table} where tenant_id = ?`, args: [tenantId] })))
  try {
    await db.write(TAKE_DOWN)
  } catch (error) {
    // Another tenant is leaving, or another move has taken it down.
    if (!isFailedCondition(error, 'shard_moves.tenant_id') && !isMissingTable(error, 'shard_moves')) throw error
  }
}

/**
 * What a shard has while tenants leave it. `shard_moves` are these tenants: `copy` while what they change is noted in `shard_changes`, `fenced`
 * while nothing of theirs may be changed any more, and `forget` while the old copy is deleted. `shard_due` is when their rows were due: a row
 * that is not due is taken up by no engine.
 */
const TABLES = [
  `create table if not exists shard_moves (
  tenant_id text primary key,
  phase text not null check (phase in ('copy', 'fenced', 'forget'))
) strict, without rowid`,
  `create table if not exists shard_changes (
  id integer primary key autoincrement,
  tenant_id text not null,
  tab text not null,
  key text not null,
  made integer not null
) strict`,
  `create table if not exists shard_due (
  tenant_id text not null,
  tab text not null,
  key text not null,
  due_ms integer,
  other_ms integer,
  mark integer not null,
  primary key (tenant_id, tab, key)
) strict, without rowid`,
]

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
const MAKE_READY: readonly string[] = [
  ...TABLES,
  ...MOVED.flatMap(table => OPS.map(op => noting(table, op))),
  ...GUARDED.flatMap(table => OPS.map(op => fencing(table, op))),
]

/** Takes all of it away again, where no tenant is leaving. */
const TAKE_DOWN: string[] = [
  'insert into shard_moves (tenant_id, phase) select null, phase from shard_moves limit 1',
  ...MOVED.flatMap(({ table }) => OPS.map(op => `drop trigger if exists shard_note_${table}_${op}`)),
  ...GUARDED.flatMap(({ table }) => OPS.map(op => `drop trigger if exists shard_fence_${table}_${op}`)),
  'drop table shard_changes',
  'drop table shard_due',
  'drop table shard_moves',
]
