import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { expectWithin } from '../../../tests/crowding.ts'
import { eventually } from '../../../tests/eventually.ts'
import { type Fixture, fixture, type Got } from '../../auth/testing/fixture.ts'
import { runIndex } from './run-index.ts'

let here: Fixture
afterEach(() => here.close())

const manifest = { model: 'demo/echo' }
const publish = (name: string, more = {}) =>
  here.call('POST', '/v1/agents', { body: { name, manifest: { ...manifest, ...more } } })

async function start(agentName: string, prompt: string, labels = {}): Promise<string> {
  const { status, body } = await here.call<Run>('POST', '/v1/runs', { body: { agentName, input: { prompt }, labels } })
  expect(status).toBe(201)
  return body.id
}

async function ended(id: string): Promise<string> {
  await eventually(async () =>
    expect((await here.call<Run>('GET', `/v1/runs/${id}`)).body.status).toMatch(/succeeded|failed/),
  )
  return id
}

async function find(query: Record<string, string>, key?: string): Promise<string[]> {
  const ids: string[] = []
  for (let path: string | undefined = `/v1/runs?${new URLSearchParams(query)}`; path !== undefined; ) {
    const got: Got<Run[]> = await here.call<Run[]>('GET', path, key === undefined ? {} : { key })
    expect([query, got.status]).toEqual([query, 200])
    ids.push(...got.body.map(({ id }) => id))
    path = /<([^>]+)>/.exec(got.headers.get('link') ?? '')?.[1]
  }
  // The clock stands still, so that runs have no order in time.
  return ids.toSorted()
}

describe('a store in clear', () => {
  beforeEach(async () => {
    here = await fixture()
  })

  it('finds runs by words of what they were told, their agent, error, labels and id, over pages', async () => {
    await publish('weather')
    await publish('broken', { model: 'openai-compatible:none/x' })
    const oslo = await ended(await start('weather', 'How warm is it in Zürich and Oslo?', { team: 'north-sea' }))
    const other = await ended(await start('weather', 'Something else'))
    const failed = await ended(await start('broken', 'Oslo again'))
    expect(await find({ q: 'zurich osl' })).toEqual([oslo])
    expect(await find({ q: 'OSLO', limit: '1' })).toEqual([oslo, failed].toSorted())
    expect(await find({ q: 'weather', limit: '1' })).toEqual([oslo, other].toSorted())
    expect(await find({ q: 'model_unconf' })).toEqual([failed])
    expect(await find({ q: 'north sea' })).toEqual([oslo])
    expect(await find({ q: other })).toEqual([other])
    expect(await find({ q: other.slice(-12) })).toEqual([other])
    expect(await find({ q: 'oslo', status: 'failed' })).toEqual([failed])
    expect(await find({ q: 'oslo', sort: 'durationMs' })).toHaveLength(2)
    expect(await find({ q: 'oslo', agentName: 'weather' })).toEqual([oslo])
    expect(await find({ q: 'oslo', agentName: '---' })).toEqual([])
    expect(await find({ q: '" OR words : "else' })).toEqual([])
    expect(await find({ q: '"*^' })).toEqual([])
    const { headers } = await here.call('GET', '/v1/runs?q=oslo&count=true')
    expect(headers.get('total-count')).toBe('2')
    expect((await here.call('GET', `/v1/runs?q=${'x'.repeat(201)}`)).status).toBe(400)
    await here.call('DELETE', `/v1/runs/${oslo}`)
    expect(await find({ q: 'oslo' })).toEqual([failed])
    expect(await find({ label: 'team:north-sea' })).toEqual([])
  })

  it('keeps nothing of what an agent that stores no prompts was told', async () => {
    await publish('quiet', { privacy: { storePrompts: false } })
    const id = await start('quiet', 'a word that is secret')
    expect(await find({ q: 'quiet' })).toEqual([id])
    await ended(id)
    expect(await find({ q: 'secret' })).toEqual([])
    expect(await find({ q: 'quiet' })).toEqual([id])
  })

  it('finds runs by a label of any form, and nothing of another tenant', async () => {
    await publish('a')
    const odd = { 'a"b\\c': 'x:y z', plain: '', '$.path[0]': 'é' }
    const id = await start('a', 'one', odd)
    const both = await ended(await start('a', 'two', { plain: '', other: '1' }))
    expect(await find({ label: 'a"b\\c:x:y z' })).toEqual([id])
    expect(await find({ label: '$.path[0]:é' })).toEqual([id])
    expect(await find({ label: 'plain:', limit: '1' })).toEqual([id, both].toSorted())
    expect(await find({ label: 'plain:', q: 'two' })).toEqual(await find({ label: 'other:1' }))
    expect(await find({ label: 'plain:', agentName: 'b' })).toEqual([])
    expect((await here.call('GET', '/v1/runs?label=none')).status).toBe(400)
    const tenant = await here.newTenant()
    const { rawKey } = await here.newKey({}, tenant)
    expect(await find({ label: 'plain:' }, rawKey)).toEqual([])
    expect(await find({ q: 'a' }, rawKey)).toEqual([])
  })

  it('comes to the same when two processes write the index at once, and reads no run again', async () => {
    await publish('a')
    const ids = []
    for (let i = 0; i < 5; i++) ids.push(await ended(await start('a', `message ${i}`)))
    const deps = { db: here.db, clock: here.clock, log: silentLog() }
    const [one, two] = [runIndex(deps), runIndex(deps)]
    await Promise.all([one.once(), two.once(), one.once()])
    expect(await find({ q: 'message' })).toEqual(ids.toSorted())
    expect(await one.once()).toBe(0)
    expect(await runIndex(deps).once()).toBe(0)
  })
})

it('keeps in a sealed store what is clear, and nothing of what is sealed', async () => {
  here = await fixture({ masterKey: new Uint8Array(32).fill(7) })
  await publish('weather')
  const id = await ended(await start('weather', 'a word that is sealed', { team: 'north' }))
  expect(await find({ q: 'sealed' })).toEqual([])
  expect(await find({ q: 'weather north' })).toEqual([id])
})

it('searches 100,000 runs for at most 150 ms of a core, whatever is asked', async () => {
  here = await fixture({ embeddedNode: false })
  const numbers = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)'
  const id = `printf('%08x-%04x-7000-8000-%012x', (1700000000000 + i * 1000) >> 16, (1700000000000 + i * 1000) & 65535, i)`
  await here.db.write([
    {
      sql: `insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, started_ms, finished_ms,
          error_code, labels, trigger_kind, isolation)
        ${numbers} select ${id}, 'default', 'agent-' || (i % 20), 'i', 'v', iif(i % 10 = 0, 'failed', 'succeeded'),
          1700000000000 + i * 1000, 0, 0, 1700000000000 + i * 1000, iif(i % 10 = 0, 'model_error', null),
          iif(i % 4 = 0, json_object('team', 't' || (i % 8)), '{}'), 'api', 'shared' from n`,
      args: [],
    },
    {
      sql: `insert into run_data (run_id, input)
        ${numbers} select ${id}, json_object('prompt', 'Summarise the report of customer ' || (i % 1000) || ' about topic ' || i) from n`,
      args: [],
    },
  ])
  const index = runIndex({ db: here.db, clock: here.clock, log: silentLog() })
  expect(await index.once()).toBe(100_000)
  const worst = { ms: 0, query: '' }
  for (const query of [
    'q=summarise',
    'q=customer+17',
    'q=nothing-like-it',
    'q=topic+99999',
    'q=summarise&status=failed',
    'q=summarise&agentName=agent-3',
    'q=sum+rep+cus',
    'label=team:t4',
    'label=team:t4&status=failed',
    'q=summarise&label=team:t4',
  ]) {
    const times: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      const before = process.cpuUsage()
      const { status } = await here.call('GET', `/v1/runs?${query}&fields=title&subRuns=folded`)
      const { user, system } = process.cpuUsage(before)
      expect([query, status]).toEqual([query, 200])
      times.push((user + system) / 1000)
    }
    const ms = Math.min(...times)
    if (ms > worst.ms) Object.assign(worst, { ms, query })
  }
  process.stderr.write(`search of 100,000 runs: at most ${worst.ms.toFixed(0)} ms of a core (${worst.query})\n`)
  expectWithin(worst.ms, 150)
}, 90_000)
