import { join } from 'node:path'
import { openDb } from '../../shared/host/open-libsql.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { DashboardFixture } from './dashboard-fixture.ts'

/** Puts so many events behind a run that there is, as they would stand there. */
export async function longRun({ folder }: DashboardFixture, id: string, count: number): Promise<string> {
  const db = await openDb(join(folder, 'waybill.db'))
  const long = '01900000-0000-7000-8000-00000000beef'
  const { rows } = await db.execute({ sql: 'select * from runs where id = ?', args: [id] })
  const columns = rows[0] === undefined ? [] : Object.keys(rows[0]).filter(name => !/^\d+$/.test(name))
  const others = columns.filter(name => name !== 'id')
  await db.execute({
    sql: `insert into runs (id, ${others.join(', ')}) select ?, ${others.join(', ')} from runs where id = ?`,
    args: [long, id],
  })
  await db.execute({
    sql: `insert into receipts select ?1, tenant_id, issued_ms, json_set(envelope, '$.payload.runId', ?1, '$.payload.eventCount', ?2)
      from receipts where run_id = ?3`,
    args: [long, count, id],
  })
  const from = Date.parse('2026-01-02T03:04:05.678Z')
  const events = Array.from({ length: count }, (_, i) => {
    const step = Math.floor(i / 2)
    const begins = i % 2 === 0
    const body = {
      seq: i + 1,
      kind: begins ? 'step_started' : 'step_completed',
      stepId: `tool-${step}-1`,
      runId: long,
      attempt: 1,
      at: new Date(from + i * 40).toISOString(),
      payload: begins ? {} : { output: `result ${step}` },
      meta: begins ? { stepKind: 'tool', name: 'http_request' } : { tokensIn: 3, tokensOut: 4, costUsd: 0.0001 },
    }
    return { run_id: long, seq: i + 1, hash: String(i).padStart(64, '0'), body: canonicalize(body) }
  })
  await db.execute({
    sql: `insert into events (run_id, seq, hash, body)
      select value ->> 'run_id', value ->> 'seq', value ->> 'hash', value ->> 'body' from json_each(?)`,
    args: [JSON.stringify(events)],
  })
  db.close()
  return long
}

/** Puts so many ended runs beside the one that there is, one every six seconds until now. */
export async function manyRuns({ folder }: DashboardFixture, id: string, count: number): Promise<void> {
  const db = await openDb(join(folder, 'waybill.db'))
  const at = `?2 - n.i * 6000`
  const newId = `printf('01900000-0000-7000-8000-%012x', n.i)`
  const times = { created_ms: at, updated_ms: at, started_ms: at, finished_ms: `${at} + 900 + n.i % 700` }
  await copied(db, 'runs', { id: newId, ...times }, [id, Date.now(), count])
  await copied(db, 'run_data', { run_id: newId }, [id, Date.now(), count])
  db.close()
}

/** Each row again so many times, with other values in some columns. */
async function copied(
  db: Db,
  table: string,
  changed: Record<string, string>,
  args: (string | number)[],
): Promise<void> {
  const { rows } = await db.execute(`select name from pragma_table_info('${table}')`)
  const names = rows.map(({ name }) => String(name))
  const [key = ''] = Object.keys(changed)
  await db.execute({
    sql: `insert into ${table} (${names.join(', ')}) with recursive n(i) as (select 1 union all select i + 1 from n where i < ?3)
      select ${names.map(name => changed[name] ?? `old.${name}`).join(', ')} from n cross join ${table} as old where old.${key} = ?1 and ?2 > 0`,
    args,
  })
}
