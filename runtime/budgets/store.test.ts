import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { budgetStore } from './store.ts'

it('reads a budget once for all who ask at the same moment, after the last of them asked', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  let reads = 0
  const counted: Db = {
    ...db,
    execute(statement) {
      reads++
      return db.execute(statement)
    },
  }
  const store = budgetStore(counted)
  const put = budgetStore(db).put({
    agentId: 'a',
    tenantId: 't',
    agentName: 'n',
    hardFail: true,
    notifyAtPct: 80,
    toolLimits: {},
    updatedMs: 1,
    costNanoDay: null,
    costNanoRun: null,
    tokensDay: 5,
    runsDay: null,
  })
  const asked = [store.get('a'), store.get('a'), store.get('b')]
  await put
  expect((await Promise.all(asked)).map(budget => budget?.tokensDay)).toEqual([5, 5, undefined])
  expect(reads).toBe(2)
  await budgetStore(db).remove('t', 'n')
  expect(await store.get('a')).toBeUndefined()
  expect(reads).toBe(3)
  db.close()
})

it('counts a tool of a day on, where another process has its midnight earlier', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const store = budgetStore(db)
  let stepId = 0
  const use = (day: string) => store.useTool({ agentId: 'a', day, tool: 't', runId: 'r', stepId: `s${stepId++}` }, 2)
  const days = ['2026-01-01', '2026-01-01', '2026-01-02', '2026-01-01', '2026-01-02', '2026-01-02', '2026-01-04']
  const got: boolean[] = []
  for (const day of days) got.push(await use(day))
  expect(got).toEqual([true, true, true, false, true, false, true])
  const { rows } = await db.execute('select distinct day from tool_uses')
  expect(rows.map(({ day }) => day)).toEqual(['2026-01-04'])
  db.close()
})

it('counts what former agents of a name used, in the middle of their calls, and nothing of other names, tenants and days', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const day = '2026-01-02'
  const atMs = Date.parse(`${day}T09:00:00Z`)
  const agents: [string, string, string, number | null][] = [
    ['gone', 'default', 'n', atMs],
    ['older', 'default', 'n', atMs - 3_600_000],
    ['ancient', 'default', 'n', atMs - 5 * 86_400_000],
    ['now', 'default', 'n', null],
    ['other', 'default', 'm', atMs],
    ['foreign', 'away', 'n', atMs],
  ]
  await db.write([
    "insert into tenants (id, name, created_ms) values ('away', '\"away\"', 1)",
    ...agents.flatMap(([id, tenantId, name, deletedMs], at) => [
      {
        sql: "insert into agents (id, tenant_id, name, labels, current_version_id, versions, created_ms, deleted_ms) values (?, ?, ?, '{}', 'v', 1, 1, ?)",
        args: [id, tenantId, name, deletedMs],
      },
      {
        sql: "insert into usage_days (agent_id, day, model, tenant_id, agent_name, runs, tokens_in, cost_nano) values (?, ?, '', ?, ?, 1, ?, 1)",
        args: [id, day, tenantId, name, 10 ** at],
      },
      {
        sql: "insert into reservations (run_id, step_id, agent_id, tokens, cost_nano) values (?, 's', ?, 7, 2)",
        args: [id, id],
      },
    ]),
  ])
  const store = budgetStore(db)
  expect(await store.today('now', day)).toMatchObject({
    runs: 3,
    tokens: 1011,
    costNano: 3,
    heldTokens: 21,
    heldNano: 6,
  })
  expect(await store.today('now', '2026-01-05')).toMatchObject({ runs: 0, tokens: 0, heldTokens: 7 })
  const use = (agentId: string, stepId: string) => store.useTool({ agentId, day, tool: 't', runId: agentId, stepId }, 3)
  expect(await use('older', 'a')).toBe(true)
  expect(await use('other', 'a')).toBe(true)
  expect(await use('now', 'a')).toBe(true)
  expect(await use('now', 'b')).toBe(true)
  expect(await use('now', 'b')).toBe(true)
  expect(await use('now', 'c')).toBe(false)
  db.close()
})
