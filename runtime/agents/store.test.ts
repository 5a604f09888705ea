import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { withoutKey } from '../http/idempotent.ts'
import { runtimeSteps } from '../schema/steps.ts'
import type { VersionRow } from './agent.ts'
import { agentStore, versionCache } from './store.ts'

let db: Db
beforeEach(async () => {
  db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
})
afterEach(() => db.close())

const now = () => new Date('2026-01-02T03:04:05.678Z')
const by = { idempotency: withoutKey, createdBy: 'k' }

it('ends what belongs to an agent in the transaction that deletes it', async () => {
  await db.execute('create table dependants (agent_id text primary key, ended_ms integer) strict')
  const store = agentStore(db, {
    now,
    newId: () => uuidv7(),
    deleting: [
      ({ id }, nowMs) => [{ sql: 'update dependants set ended_ms = ? where agent_id = ?', args: [nowMs, id] }],
      () => [{ sql: 'insert into dependants (agent_id) values (?)', args: ['once'] }],
    ],
  })
  const { agent } = await store.save('default', { name: 'a' }, by)
  const { agent: other } = await store.save('default', { name: 'b' }, by)
  await db.execute({ sql: 'insert into dependants (agent_id) values (?)', args: [agent.id] })
  expect(await store.remove(agent)).toBe(true)
  const ended = await db.execute({ sql: 'select ended_ms from dependants where agent_id = ?', args: [agent.id] })
  expect(ended.rows[0]?.ended_ms).toBe(now().getTime())
  // The second hook now breaks a constraint: nothing of the deletion stays.
  await expect(store.remove(other)).rejects.toThrow(/constraint/i)
  expect(await store.getByName('default', 'b')).toBeDefined()
})

it('keeps versions readable for their runs after the agent is gone, and from other tenants hidden', async () => {
  const store = agentStore(db, { now, newId: () => uuidv7() })
  const { agent, version } = await store.save(
    'default',
    { name: 'a', manifest: manifest.parse({ model: 'gpt-5' }) },
    by,
  )
  await store.remove(agent)
  const fresh = agentStore(db, { now, newId: () => uuidv7() })
  for (const one of [store, fresh]) {
    expect(await one.findVersion('default', version.versionId)).toMatchObject({
      agentId: agent.id,
      agentName: 'a',
      manifest: { model: 'openai/gpt-5' },
      manifestHash: version.manifestHash,
    })
    await expect(one.findVersion('other', version.versionId)).rejects.toMatchObject({ code: 'forbidden_tenant' })
    expect(await one.currentByName('default', 'a')).toBeUndefined()
  }
})

it('remembers versions up to so much text, and forgets the least used', () => {
  const cache = versionCache(100)
  const version = (versionId: string) => ({ versionId }) as VersionRow
  for (const id of ['a', 'b']) cache.put(version(id), 40)
  expect(cache.get('a')).toBeDefined()
  cache.put(version('c'), 40)
  expect(['a', 'b', 'c'].map(id => cache.get(id) !== undefined)).toEqual([true, false, true])
  cache.put(version('huge'), 101)
  expect(cache.get('huge')).toBeUndefined()
  expect(cache.get('a')).toBeDefined()
})
