import type { ResultSet } from '@libsql/client/web'
import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { retention } from './sweep.ts'

it('looks up what is over by its time, and never at what is kept', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const asked: { sql: string; args: never[] }[] = []
  const execute: Db['execute'] = statement => {
    asked.push(statement as never)
    return db.execute(statement)
  }
  const remove = () => Promise.reject(new Error('there is nothing to remove'))
  for (const days of [0, 30]) {
    const stores = { db: { execute }, runs: { remove }, sessions: { remove } }
    await retention({ ...stores, days, clock: systemClock, log: silentLog() }).once()
  }
  expect(asked).toHaveLength(4)
  for (const { sql, args } of asked) {
    const { rows } = await db.execute({ sql: `explain query plan ${sql}`, args })
    const plan = rows.map(({ detail }) => String(detail)).filter(line => /^(?:SEARCH|SCAN) [rs]\b/.test(line))
    expect(plan, sql).toEqual([expect.stringMatching(/^SEARCH [rs] USING .*\(version_id=\? AND \w+_ms<\?\)$/)])
  }
  db.close()
})

it('deletes eight at a time', async () => {
  let [under, most, gone] = [0, 0, 0]
  const lots = [Array.from({ length: 200 }, (_, at) => ({ id: `run-${at}` })), [{ id: 'last' }], [], []]
  const execute = async () => ({ rows: lots.shift() ?? [] }) as unknown as ResultSet
  async function remove(): Promise<boolean> {
    most = Math.max(most, ++under)
    await new Promise(resolve => setImmediate(resolve))
    under--
    return ++gone > 0
  }
  const sessions = { remove: () => Promise.reject(new Error('there is none')) }
  await retention({ db: { execute }, runs: { remove }, sessions, days: 1, clock: systemClock, log: silentLog() }).once()
  expect([most, gone]).toEqual([8, 201])
})
