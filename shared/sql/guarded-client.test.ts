import { expect, test } from 'vitest'
import { reads } from './guarded-client.ts'

test.each([
  'select 1',
  '  -- a note; insert\n SELECT * from t;',
  '/* delete */ values (1)',
  'with x as (select 1) select * from x',
  "with x as (select 'insert; into') select replace(a, 'b', 'c') from x",
  'explain query plan delete from t',
  'pragma user_version',
])('%s only reads', sql => {
  expect(reads(sql)).toBe(true)
})

test.each([
  'insert into t values (1)',
  'with x as (select 1) insert into t select * from x',
  'with x as (select 1) delete from t',
  'pragma user_version = 3',
  'pragma wal_checkpoint(TRUNCATE)',
  'select 1; delete from t',
  'begin',
  'vacuum',
  'attach database "x" as y',
  '',
])('%s counts as a write', sql => {
  expect(reads(sql)).toBe(false)
})
