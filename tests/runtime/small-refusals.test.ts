import { afterEach, expect, it } from 'vitest'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { until } from './node-fixture.ts'

let on: Api
afterEach(() => on.close())

it('an unknown query parameter is refused with the one that was meant, on every operation', async () => {
  on = await api()
  for (const [path, said] of [
    ['/v1/sessions?label=team:x', 'label: unknown query parameter; '],
    ['/v1/runs?agentname=x', 'agentname: unknown query parameter; did you mean agentName?'],
    ['/v1/runs?statuss=failed', 'statuss: unknown query parameter; did you mean status?'],
    ['/v1/agents?lables=a:b', 'lables: unknown query parameter; did you mean label?'],
    ['/v1/isolation?x=1', 'x: unknown query parameter; this operation takes none'],
    ['/v1/runs/nope/steps?limit=5', 'limit: unknown query parameter; this operation takes none'],
  ] as const) {
    const answer = await on.call('GET', path)
    const body = (await answer.json()) as { error: string; details: unknown }
    expect([path, answer.status, body.error.startsWith(said), body.details]).toEqual([
      ...[path, 400, true],
      [{ path: /\?(\w+)/.exec(path)![1], message: body.error.slice(body.error.indexOf(': ') + 2) }],
    ])
  }
  for (const path of ['/v1/runs?agent=x&pageSize=5', '/v1/runs?status=undefined', '/v1/schedules?enabled=true']) {
    expect([path, (await on.call('GET', path)).status]).toEqual([path, 200])
  }
  const posted = await on.call('POST', '/v1/agents?dryRun=true', { name: 'clerk' })
  expect(posted.status).toBe(400)
  expect((await on.call('GET', '/v1/agents/clerk')).status).toBe(404)
})

it('a name of spaces alone is refused, in words', async () => {
  on = await api()
  for (const [path, body] of [
    ['/v1/api-keys', { name: ' \t' }],
    ['/v1/nodes', { name: '\u00a0' }],
    ['/v1/tenants', { name: ' ' }],
  ] as const) {
    const said = await on.json<{ error: string }>(400, 'POST', path, body)
    expect(said.error).toBe('name: expected a string of 1 to 128 characters that are not all spaces')
  }
  await on.json(201, 'POST', '/v1/nodes', { name: ' a b ' })
})

it('a question of yes or no is approved without a word, and a webhook names what it waits for', async () => {
  on = await api({ masterKey: new Uint8Array(32).fill(7) })
  await on.json(201, 'POST', '/v1/webhooks', { url: 'https://93.184.216.34/hook', events: ['run.waiting'] })
  await on.json(201, 'POST', '/v1/agents', { name: 'asker', manifest: { model: 'demo/echo', tools: ['ask_human'] } })
  const prompt = '/call ask_human {"prompt":"Shall I?"}'
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'asker', input: { prompt } })
  const asked = await until(async () => {
    return (await on.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`))[0]
  }, 'it asks')
  const told = await until(async () => {
    const { rows } = await on.db.execute('select data from webhook_deliveries')
    return rows[0] && (JSON.parse(String(rows[0].data)) as object)
  }, 'it is told')
  expect(told).toMatchObject({ runId: id, status: 'waiting', approvalId: asked.id })
  await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, {})
  const run = await until(async () => {
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    return run.status === 'succeeded' && run
  }, 'it goes on')
  expect(JSON.stringify(run.output)).toContain('yes')
})

it.each([
  ['a tool', { tools: ['exec'] }],
  ['a server that is a command', { mcpServers: [{ name: 'files', command: 'server', allow: ['*'] }] }],
])('publishing warns of a sandbox that no node could give: %s', async (_for, manifest) => {
  on = await api()
  const { warnings } = await on.json<{ warnings: string[] }>(201, 'POST', '/v1/agents', { name: 'coder', manifest })
  expect(warnings).toEqual([
    'what it runs in a sandbox needs a microVM under isolation shared, and no node offers one: its runs end isolation_unavailable',
  ])
})

it('an agent that names a pool is executed by no one else, before there is any node either', async () => {
  on = await api()
  const labels = { 'waybill.pool': 'office' }
  await on.json(201, 'POST', '/v1/agents', { name: 'away', labels, manifest: { model: 'demo/echo' } })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'away', input: { prompt: 'canary' } })
  const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
  expect(run).toMatchObject({ status: 'failed', dataAvailable: false, error: { code: 'isolation_unavailable' } })
  expect(run.error?.message).toMatch(/no enrolled node of pool office .*none is enrolled/)
  const session = await on.call('POST', '/v1/sessions', { agentName: 'away' })
  expect([session.status, await session.json()]).toEqual([
    503,
    expect.objectContaining({ code: 'isolation_unavailable' }),
  ])
  await on.json(200, 'PATCH', '/v1/agents/away', { labels: { 'waybill.pool': 'local' } })
  const here = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'away', input: { prompt: 'here' } })
  await until(
    async () => (await on.json<Run>(200, 'GET', `/v1/runs/${here.id}`)).status === 'succeeded',
    'it is executed here',
  )
})
