import { expect, it } from 'vitest'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { acquireHold, MoveTaken, releaseHold } from './hold.ts'

it('takes writes of the last command that took it, for each tenant', async () => {
  const db = await openDb(':memory:')
  await db.execute('create table t (n integer)')
  const first = await acquireHold(db, 'a', 'first')
  const beside = await acquireHold(db, 'b', 'beside')
  expect((await first.execute('insert into t values (1)')).rowsAffected).toBe(1)
  expect((await first.write(['insert into t values (2)', 'select count(*) as n from t']))[1]!.rows).toEqual([{ n: 2 }])
  const second = await acquireHold(db, 'a', 'second')
  for (const act of [() => first.execute('insert into t values (3)'), () => first.write(['delete from t'])]) {
    await expect(act()).rejects.toThrow(MoveTaken)
  }
  expect((await first.execute('select n from t')).rows).toEqual([{ n: 1 }, { n: 2 }])
  await second.execute('insert into t values (4)')
  await releaseHold(db, 'a', 'first')
  await second.execute('insert into t values (5)')
  await releaseHold(db, 'a', 'second')
  await expect(second.execute('delete from t')).rejects.toThrow(MoveTaken)
  await beside.execute('insert into t values (6)')
  await releaseHold(db, 'b', 'beside')
  await expect(beside.execute('delete from t')).rejects.toThrow(/another command has taken over the move of tenant b/)
  expect((await db.execute("select name from sqlite_master where name like 'shard%'")).rows).toEqual([])
  expect((await db.execute('select count(*) as n from t')).rows).toEqual([{ n: 5 }])
  await db.close()
})
