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
  await budgetStore(db).remove('a')
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
