import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from './steps.ts'

const BEFORE = runtimeSteps.filter(({ id }) => id < 104)
const RECEIPT = "insert into receipts values ('r', 'default', 5, '{}')"
const MOVE = 'create trigger shard_note_receipts_insert after insert on receipts begin select 1; end'

it.each([
  ['in rows', [], false],
  ['as they are while a tenant moves', [MOVE], true],
])('an older store has its receipts %s', async (_, more, keeps) => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', BEFORE)
  for (const sql of [RECEIPT, ...more]) await db.execute(sql)
  await migrate(db, 'runtime', runtimeSteps)
  expect((await db.execute('select * from receipts')).rows).toEqual([
    { run_id: 'r', tenant_id: 'default', issued_ms: 5, envelope: '{}' },
  ])
  const [table] = (await db.execute("select sql from sqlite_schema where type = 'table' and name = 'receipts'")).rows
  expect(/without rowid/.test(String(table?.sql))).toBe(keeps)
  await db.close()
})

const FEWER = ['runs_list', 'runs_open', 'runs_version']
const RUNS = `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)
insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, trigger_kind, isolation)
select 'run ' || n, 'default', 'a', 'a', 'v', 'succeeded', n, n, 'api', 'none' from numbers`

it.each([
  [100_000, []],
  [100_001, FEWER],
])('an older store with %i runs keeps the indexes that others stand for: %j', async (many, kept) => {
  const db = await openDb(':memory:')
  await migrate(
    db,
    'runtime',
    runtimeSteps.filter(({ id }) => id < 105),
  )
  await db.execute({ sql: RUNS, args: [many] })
  await migrate(db, 'runtime', runtimeSteps)
  const names = rowsOf<{ name: string }>(await db.execute("select name from sqlite_schema where type = 'index'"))
  expect(names.map(({ name }) => name).filter(name => FEWER.includes(name))).toEqual(kept)
  await db.close()
})
