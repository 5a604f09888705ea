import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
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
