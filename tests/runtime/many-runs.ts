import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { openDb } from '../../shared/host/open-libsql.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { DashboardFixture } from './dashboard-fixture.ts'

/** Puts so many ended runs of twenty agents beside those that there are, over the last thirty days, one in fifty failed. */
export async function manyRuns({ folder }: DashboardFixture, count: number): Promise<void> {
  const db = await openDb(join(folder, 'waybill.db'))
  const { rows } = await db.execute('select tenant_id from runs limit 1')
  await db.execute({
    sql: `insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, started_ms, finished_ms,
        error_code, model, cost_nano, trigger_kind, isolation)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < ?3)
      select printf('%08x-0000-7000-8000-%012x', i, i), ?2, 'agent-' || (i % 20), 'i', 'v',
        case when i % 50 = 0 then 'failed' else 'succeeded' end, ?1 - i * 25920 - 500, ?1 - i * 25920, ?1 - i * 25920 - i % 5000,
        ?1 - i * 25920, case when i % 50 = 0 then 'model_error' end, 'openai/model-' || (i % 3), i, 'api', 'shared' from n`,
    args: [Date.now(), rows[0]!.tenant_id!, count],
  })
  await db.execute(`insert into run_data (run_id, input) select id, '{"prompt":"Message of ' || agent_name || '"}' from runs
    where id not in (select run_id from run_data)`)
  db.close()
}

/** Puts a run of so many steps beside one that there is, as it would stand there. */
export async function longRun({ folder }: DashboardFixture, id: string, steps: number): Promise<string> {
  const db = await openDb(join(folder, 'waybill.db'))
  const long = '01900000-0000-7000-8000-00000000beef'
  for (const table of ['runs', 'run_data']) {
    const key = table === 'runs' ? 'id' : 'run_id'
    const { rows } = await db.execute({ sql: `select * from ${table} where ${key} = ?`, args: [id] })
    const others = Object.keys(rows[0]!).filter(name => !/^\d+$/.test(name) && name !== key)
    await db.execute({
      sql: `insert into ${table} (${key}, ${others.join(', ')}) select ?, ${others.join(', ')} from ${table} where ${key} = ?`,
      args: [long, id],
    })
  }
  await db.execute({
    sql: `insert into receipts select ?1, tenant_id, issued_ms, json_set(envelope, '$.payload.runId', ?1, '$.payload.eventCount', ?2)
      from receipts where run_id = ?3`,
    args: [long, 2 * steps, id],
  })
  const from = Date.parse('2026-01-02T03:04:05.678Z')
  const events = Array.from({ length: 2 * steps }, (_, i) => {
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
    return { seq: i + 1, hash: createHash('sha256').update(String(i)).digest('hex'), body: canonicalize(body) }
  })
  await db.execute({
    sql: `insert into events (run_id, seq, hash, body)
      select ?2, value ->> 'seq', value ->> 'hash', value ->> 'body' from json_each(?1)`,
    args: [JSON.stringify(events), long],
  })
  db.close()
  return long
}
