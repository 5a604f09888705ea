import type { ResultSet } from '@libsql/client/web'
import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
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

it('deletes nothing by a clock that has jumped a year ahead, until it has stayed there for an hour', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const clock = manualClock(new Date('2026-01-02T03:04:05Z'))
  const dayAgo = clock.now().getTime() - 86_400_000
  await db.client.executeMultiple(`insert into agents values ('a', 'default', 'a', null, '{}', 'v', 1, 1, null);
    insert into agent_versions values ('v', 'default', 'a', 1, '{}', '', null, 1, '', null, null);
    insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, finished_ms, trigger_kind, isolation)
      values ('r', 'default', 'a', 'a', 'v', 'succeeded', ${dayAgo}, ${dayAgo}, ${dayAgo}, 'api', 'shared')`)
  for (const atStart of [true, false]) {
    const removed: string[] = []
    const remove = async (id: string) => removed.push(id) > 1
    const sessions = { remove: () => Promise.reject(new Error('there is none')) }
    if (atStart) clock.set(365 * 86_400_000)
    const keeping = retention({ db, runs: { remove }, sessions, days: 30, clock, log: silentLog() })
    keeping.start()
    await keeping.once()
    if (!atStart) clock.set(365 * 86_400_000)
    await keeping.once()
    expect([atStart, removed]).toEqual([atStart, []])
    clock.advance(3_600_000)
    await keeping.once()
    expect([atStart, removed]).toEqual([atStart, ['r']])
    await keeping.close()
    clock.set(-365 * 86_400_000)
  }
  db.close()
})
