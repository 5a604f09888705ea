import type { InStatement } from '@libsql/client/web'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { MAKE_READY, TAKE_DOWN } from './move-triggers.ts'

type Phase = 'copy' | 'fenced' | 'forget'

/** Where a tenant stands in the shard that it leaves; undefined where it is not leaving, or nothing was made ready. */
export async function phaseOf(db: Db, tenantId: string): Promise<Phase | undefined> {
  const { rows } = await db.execute("select 1 from sqlite_master where name = 'shard_moves'")
  if (rows.length === 0) return undefined
  const found = await db.execute({ sql: 'select phase from shard_moves where tenant_id = ?', args: [tenantId] })
  return rowsOf<{ phase: Phase }>(found)[0]?.phase
}

/** From here on what the tenant changes is noted. */
export async function beginNoting(db: Db, tenantId: string): Promise<void> {
  await db.client.executeMultiple(MAKE_READY)
  const sql = "insert into shard_moves (tenant_id, phase) values (?, 'copy') on conflict do nothing"
  await db.execute({ sql, args: [tenantId] })
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
export async function giveTimesBack(from: Db, to: Db, tenantId: string): Promise<void> {
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

/** What has ended meanwhile is due no more. */
const OPEN: Readonly<Record<string, string>> = {
  runs: " and status in ('queued', 'running', 'waiting') and owner is null",
  webhook_deliveries: " and outcome = 'pending'",
}

/** The tenant stays: its rows may be changed again, and are due when they were. */
export async function takeFenceBack(db: Db, tenantId: string): Promise<void> {
  await db.execute({ sql: "update shard_moves set phase = 'copy' where tenant_id = ?", args: [tenantId] })
  await giveTimesBack(db, db, tenantId)
  await endNoting(db, tenantId)
}

/** Lets the old copy be deleted. */
export async function openForDeletion(db: Db, tenantId: string): Promise<void> {
  await db.execute({ sql: "update shard_moves set phase = 'forget' where tenant_id = ?", args: [tenantId] })
}

/** Nothing is noted of the tenant any more; after the last one nothing reminds of moves. */
export async function endNoting(db: Db, tenantId: string): Promise<void> {
  const tables = ['shard_changes', 'shard_due', 'shard_moves']
  await db.write(tables.map(table => ({ sql: `delete from ${table} where tenant_id = ?`, args: [tenantId] })))
  const { rows } = await db.execute('select 1 from shard_moves limit 1')
  if (rows.length === 0) await db.client.executeMultiple(TAKE_DOWN)
}
