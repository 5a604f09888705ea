import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createLog } from '../../shared/log/log.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { eventually } from '../eventually.ts'
import { type Api, api } from './api.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function service(options: Parameters<typeof api>[0] = {}) {
  const lines: string[] = []
  const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(line) })
  const on = await api({ log, ...options })
  ends.push(on.close)
  return { ...on, lines }
}

const agentNamed = ({ json }: Api, name: string, manifest: object = {}) =>
  json<{ id: string }>(201, 'POST', '/v1/agents', { name, manifest })

describe('one damaged row of a list', () => {
  const run = (agentName: string) => ({ agentName, input: {} })
  const cases: [path: string, table: string, change: string, make: (on: Api) => Promise<unknown>][] = [
    ['/v1/agents', 'agents', "labels = '{'", on => agentNamed(on, 'second')],
    ['/v1/agents', 'agents', 'created_ms = -9000000000000000', on => agentNamed(on, 'second')],
    ['/v1/runs', 'runs', "labels = '7'", on => on.json(201, 'POST', '/v1/runs', run('first'))],
    ['/v1/runs', 'runs', 'cost_nano = 9223372036854775807', on => on.json(201, 'POST', '/v1/runs', run('first'))],
    [
      '/v1/api-keys',
      'api_keys',
      "scopes = '{'",
      on => on.json(201, 'POST', '/v1/api-keys', { name: 'second', scopes: ['runs:read'] }),
    ],
    [
      '/v1/schedules',
      'schedules',
      "input = 'null'",
      on => on.json(201, 'POST', '/v1/schedules', { agentName: 'first', cronExpr: '0 0 1 1 *' }),
    ],
    [
      '/v1/webhooks',
      'webhooks',
      "url = '{'",
      on => on.json(201, 'POST', '/v1/webhooks', { url: 'https://example.com/hook' }),
    ],
    ['/v1/sessions', 'sessions', "title = '7'", on => on.json(201, 'POST', '/v1/sessions', { agentName: 'first' })],
    ['/v1/tenants', 'tenants', "name = '{'", on => on.json(201, 'POST', '/v1/tenants', { name: 'second' })],
    [
      '/v1/secrets',
      'secrets',
      "binding = '7'",
      on => on.json(200, 'PUT', `/v1/secrets/${crypto.randomUUID()}`, { value: 'x' }),
    ],
    [
      '/v1/secrets',
      'secrets',
      "binding = replace(binding, 'hosts', 'hostt')",
      on =>
        on.json(200, 'PUT', `/v1/secrets/${crypto.randomUUID()}`, { value: 'x', hosts: [{ host: 'api.example.com' }] }),
    ],
  ]
  it.each(cases)('%s shows the others, says so and names it in the log (%s: %s)', async (path, table, change, make) => {
    const on = await service({ masterKey: new Uint8Array(32).fill(1) })
    await agentNamed(on, 'first')
    await make(on)
    await make(on).catch(() => agentNamed(on, 'third'))
    const key = table === 'secrets' ? 'name' : 'rowid'
    const before = (await on.json<unknown[]>(200, 'GET', path)).length
    await on.db.execute(`update ${table} set ${change} where ${key} = (select max(${key}) from ${table})`)
    const answer = await on.call('GET', path)
    expect(answer.status).toBe(200)
    expect((await answer.json()) as unknown[]).toHaveLength(before - 1)
    expect(answer.headers.get('x-damaged-rows')).toBe('1')
    expect(on.lines.filter(line => line.includes('is damaged in the store'))).toHaveLength(1)
  })

  it('leads on to the next page', async () => {
    const on = await service()
    for (const name of ['a', 'b', 'c', 'd']) await agentNamed(on, name)
    await on.db.execute("update agents set labels = '{' where name = 'c'")
    const first = await on.call('GET', '/v1/agents?limit=2')
    expect(((await first.json()) as { name: string }[]).map(({ name }) => name)).toEqual(['d', 'b'])
    const next = /<([^>]*)>/.exec(first.headers.get('link') ?? '')?.[1]
    expect((await on.json<{ name: string }[]>(200, 'GET', next!)).map(({ name }) => name)).toEqual(['a'])
  })
})

it('a page whose rows are all damaged leads on to the next one', async () => {
  const on = await service()
  for (const name of ['a', 'b', 'c', 'd']) await agentNamed(on, name)
  await on.db.execute("update agents set labels = '{' where name in ('c', 'd')")
  const names: string[][] = []
  for (let path: string | undefined = '/v1/agents?limit=1'; path !== undefined; ) {
    const answer = await on.call('GET', path)
    names.push(((await answer.json()) as { name: string }[]).map(({ name }) => name))
    path = /<([^>]*)>/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  expect(names).toEqual([[], ['b'], ['a']])
})

it.each(['', '&sort=costUsd', '&sort=durationMs'])('so does one of runs: %s', async sort => {
  const on = await service()
  await agentNamed(on, 'worker')
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push((await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })).id)
  const list = () => on.json<Run[]>(200, 'GET', '/v1/runs?status=succeeded')
  await eventually(async () => expect(await list()).toHaveLength(4))
  for (const [n, id] of ids.entries())
    await on.db.execute({
      sql: 'update runs set cost_nano = ?2, finished_ms = started_ms + ?2, labels = ?3 where id = ?1',
      args: [id, n + 1, n < 2 ? '{}' : '{'],
    })
  const seen: string[] = []
  for (let path: string | undefined = `/v1/runs?limit=1${sort}`; path !== undefined; ) {
    const answer = await on.call('GET', path)
    seen.push(...((await answer.json()) as Run[]).map(({ id }) => id))
    path = /<([^>]*)>/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  expect(seen).toEqual(ids.slice(0, 2).toReversed())
})

it('a page of connectors is full where this version does not know some of them', async () => {
  const on = await service()
  for (const [n, name] of ['github', 'of-next-year', 'another-one', 'slack'].entries())
    await on.db.execute({
      sql: `insert into connectors (tenant_id, connector_id, id, display_name, auth_method, status, config, missing, sealed, revision, created_ms, updated_ms)
        values ('default', ?1, ?2, '"x"', 'api_key', 'installed', '{}', '[]', '', 1, ?3, ?3)`,
      args: [name, crypto.randomUUID(), n],
    })
  const first = await on.call('GET', '/v1/connectors?limit=1')
  const ids = async (answer: Response) =>
    ((await answer.json()) as { connectorId: string }[]).map(({ connectorId }) => connectorId)
  expect(await ids(first)).toEqual(['slack'])
  const next = /<([^>]*)>/.exec(first.headers.get('link') ?? '')?.[1]
  expect(await ids(await on.call('GET', next!))).toEqual(['github'])
})

describe('an agent whose published manifest was edited', () => {
  it('starts nothing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'damaged-'))
    ends.push(() => rm(folder, { recursive: true, force: true }))
    const url = join(folder, 'x.db')
    const first = await api({ url })
    await agentNamed(first, 'worker', { systemPrompt: 'Be kind.' })
    await first.db.execute("update agent_versions set manifest = replace(manifest, 'kind', 'rude')")
    await first.close()
    const on = await service({ url })
    const answer = await on.call('POST', '/v1/runs', { agentName: 'worker', input: {} })
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { code: 'internal', error: expect.stringMatching(/^version .* of agent worker is damaged in the store: /) },
    ])
  })
})

describe('a run under way that is damaged', () => {
  const changes: [what: string, sql: string][] = [
    ['its input', "update run_data set input = '{' where run_id = ?"],
    ['its input is gone', 'delete from run_data where run_id = ?'],
    ['an event that cannot be read', "update events set body = '{' where run_id = ? and seq = 2"],
    ['what a step gave', "update events set body = replace(body, 'waitedUntil', 'waitedUnti1') where run_id = ?"],
    ['an event is gone', 'delete from events where run_id = ? and seq = 2'],
    [
      'its last events are gone',
      'delete from events where run_id = ?1 and seq >= (select max(seq) - 1 from events where run_id = ?1)',
    ],
    ['a hash', "update events set hash = replace(hash, substr(hash, 1, 1), 'x') where run_id = ? and seq = 2"],
    ['a number beyond 2^53', 'update runs set ran_ms = 9007199254740993 where id = ?'],
  ]
  it.each(changes)('is set aside, holds up no other, and can be ended: %s', async (_, sql) => {
    const on = await service({ limits: { recoveryMs: 200 } })
    const prompt = '/call wait {"seconds":0}\n/call wait_signal {"name":"go"}'
    const ids: string[] = []
    for (const name of ['bad', 'good']) {
      await agentNamed(on, name, { tools: ['wait', 'wait_signal'] })
      ids.push((await on.json<Run>(201, 'POST', '/v1/runs', { agentName: name, input: { prompt } })).id)
    }
    const [bad = '', good = ''] = ids
    const get = (id: string) => on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    const isParked = async (id: string) => (await get(id)).parked?.reason === 'signal'
    await eventually(async () => expect([await isParked(bad), await isParked(good)]).toEqual([true, true]))
    await on.db.execute({ sql, args: [bad] })
    for (const id of ids) await on.call('POST', `/v1/runs/${id}/signals/go`, { value: 1 })
    await eventually(async () => expect((await get(good)).status).toBe('succeeded'))
    const standing = async () =>
      (await on.db.execute({ sql: 'select status, parked from runs where id = ?', args: [bad] })).rows[0]
    await eventually(async () => expect(await standing()).toEqual({ status: 'waiting', parked: 'poisoned' }))
    expect(on.lines.filter(line => line.includes('a damaged run is set aside'))).toHaveLength(1)
    expect((await on.call('GET', '/readyz')).status).toBe(200)
    if (sql.includes('ran_ms')) return
    const { status } = await on.call('POST', `/v1/runs/${bad}/cancel`, {})
    // Its input cannot be shown, which the answer says; it has ended.
    expect(sql.includes("input = '{'") ? 500 : 200).toBe(status)
    expect((await standing())?.status).toBe('cancelled')
  })
})

it('prices of a tenant that were edited charge nothing: they are named until they are saved again', async () => {
  const on = await service({ masterKey: new Uint8Array(32).fill(1) })
  const settings = { prices: { 'openai/gpt-5': { inPerMTok: 1, outPerMTok: 2 } } }
  await on.json(200, 'PUT', '/v1/settings/models', settings)
  for (const [from, to] of [
    ['prices', 'pricet'],
    ['inPerMTok', 'inPerMToj'],
    ['"outPerMTok":2', '"outPerMTok":"2"'],
  ]) {
    await on.db.execute({ sql: 'update model_settings set settings = replace(settings, ?, ?)', args: [from!, to!] })
    const answer = await on.call('GET', '/v1/settings/models')
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining('save them again')])
    await on.json(200, 'PUT', '/v1/settings/models', settings)
    expect(await on.json(200, 'GET', '/v1/settings/models')).toMatchObject(settings)
  }
})

it('a damaged webhook fails no commit, and the others hear of the run', async () => {
  const on = await service({ masterKey: new Uint8Array(32).fill(1) })
  await agentNamed(on, 'worker')
  for (const name of ['a', 'b']) await on.json(201, 'POST', '/v1/webhooks', { url: `https://example.com/${name}` })
  await on.db.execute("update webhooks set events = '{' where url like '%/a%'")
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: {} })
  await eventually(async () => {
    expect((await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).status).toBe('succeeded')
  })
  expect((await on.db.execute('select distinct webhook_id from webhook_deliveries')).rows).toHaveLength(1)
})

it('a damaged run keeps no other from being found', async () => {
  const on = await service()
  await agentNamed(on, 'worker')
  const made: string[] = []
  for (let n = 0; n < 2; n++)
    made.push((await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: {} })).id)
  await on.db.execute({ sql: "update runs set labels = '{' where id = ?", args: [made[0]!] })
  expect((await on.json<Run[]>(200, 'GET', '/v1/runs?q=worker')).map(({ id }) => id)).toEqual([made[1]])
})
