import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { endRuns } from './end-runs.ts'

async function store() {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  await db.execute("insert into tenants (id, name, created_ms) values ('t', 't', 1)")
  for (const [id, name, deleted] of [
    ['former', 'worker', 1],
    ['old', 'worker', null],
    ['new', 'worker-of-today', null],
  ] as const) {
    const sql = `insert into agents (id, tenant_id, name, labels, current_version_id, versions, created_ms, deleted_ms)
      values (?, 't', ?, '{}', 'v', 1, 1, ?)`
    await db.execute({ sql, args: [id, name, deleted] })
  }
  const run = `insert into runs
    (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, trigger_kind, isolation) values`
  for (const [id, agentId, name, status] of [
    ['open', 'old', 'worker', 'running'],
    ['waits', 'old', 'worker', 'waiting'],
    ['over', 'old', 'worker', 'succeeded'],
    ['another', 'former', 'worker', 'running'],
    ['beside', 'new', 'worker-of-today', 'queued'],
  ]) {
    const args = [id!, name!, agentId!, status!]
    await db.execute({ sql: `${run} (?, 't', ?, ?, 'v', ?, 1, 1, 'api', 'none')`, args })
  }
  return db
}

it('an agent that is deleted ends its own open runs, and none of an agent that had its name before', async () => {
  const db = await store()
  await db.write(endRuns({ id: 'old' }, 5))
  const ending = await db.execute("select id from runs where ending = 'agent_deleted' order by id")
  expect(rowsOf<{ id: string }>(ending).map(({ id }) => id)).toEqual(['open', 'waits'])
  await db.close()
})

it('finds them by an index, however many runs have ended', async () => {
  const db = await store()
  const [{ sql, args }] = endRuns({ id: 'old' }, 5) as [{ sql: string; args: [] }]
  const plan = await db.execute({ sql: `explain query plan ${sql}`, args })
  expect(rowsOf<{ detail: string }>(plan)[0]!.detail).toContain(
    'runs_agent_status (tenant_id=? AND agent_name=? AND status=?)',
  )
  await db.close()
})
