import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../../shared/log/log.ts'
import type { PoolCredential } from '../../shared/wire/runtime/node.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { completionFrames, completionOf } from '../upstream/frames.ts'
import { answer, type ScriptedUpstream, type Seen, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type Api, api } from './api.ts'
import { filesOf, type NodeFixture, nodeFixture, until } from './node-fixture.ts'

const [KEY, SECRET, BOT] = ['sk-canary-provider-key', 'canary-named-secret', 'xoxb-1111-2222-canarybot'] as const
const PATH = '/v1/pools/default/credentials'

let folder: string
let control: Api
let remote: ScriptedUpstream
let nodes: NodeFixture[]
let lines: string[]
const egress = nodeEgress({ rule: outboundRule([readAllowEntry('127.0.0.1')!]) })

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-credentials-'))
  lines = []
  const log = createLog({ filter: { all: 'trace', byTarget: new Map() }, write: line => lines.push(line) })
  const masterKey = new Uint8Array(32).fill(7)
  control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false, log })
  remote = await scriptedUpstream()
  nodes = []
})
afterEach(async () => {
  for (const node of nodes) await node.close()
  await control.close()
  await remote.close()
  await rm(folder, { recursive: true, force: true })
})

async function node(name: string): Promise<NodeFixture> {
  const made = await nodeFixture(control, folder, { name, egress })
  nodes.push(made)
  return made
}
const put = (body: object) => control.json<PoolCredential>(200, 'PUT', PATH, body)
const list = () => control.json<PoolCredential[]>(200, 'GET', PATH)
/** The credential, once every node of the pool has said what became of it. */
const settled = (ref: string) =>
  until(async () => {
    const found = (await list()).find(one => one.ref === ref)
    return found?.nodes.every(({ at }) => at !== undefined) && found
  }, `${ref} is with its nodes`)
async function ran(agentName: string): Promise<Run> {
  const { id } = await control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt: 'go' } })
  await until(
    async () => isTerminal((await control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)).status),
    `the run of ${agentName} ends`,
  )
  return control.json<Run>(200, 'GET', `/v1/runs/${id}`)
}
const header = ({ rawHeaders }: Seen, name: string) =>
  rawHeaders[rawHeaders.findIndex((one, at) => at % 2 === 0 && one.toLowerCase() === name) + 1]
const provider = () => ({ provider: { provider: 'openai', apiKey: KEY, baseUrl: remote.origin } })
const says = (message: object) =>
  stream(completionFrames(completionOf([message] as Parameters<typeof completionOf>[0])))

it('keys, connectors and secrets reach the runs of a node and stand nowhere else', async () => {
  const one = await node('one')
  for (const body of [
    provider(),
    { secret: { name: 'token', value: SECRET } },
    { connector: { connectorId: 'slack', config: { botToken: BOT, baseUrl: remote.origin } } },
  ]) {
    await put(body)
  }
  for (const ref of ['provider/openai', 'secret/token', 'connector/slack']) {
    expect((await settled(ref)).nodes).toEqual([{ nodeId: one.identity.nodeId, at: expect.any(String) }])
  }
  const call = { id: 'c1', type: 'function', function: { name: 'slack__list_users', arguments: '{}' } }
  remote.queue(says({ tool_calls: [call] }), answer(200, '{"ok":true,"members":[]}'), says({ content: 'canary-done' }))
  const made = await control.json<{ warnings: unknown[] }>(201, 'POST', '/v1/agents', {
    name: 'worker',
    manifest: { model: 'openai/gpt-4.1-mini', connectors: ['slack.list_users'] },
  })
  expect(made.warnings).toEqual([])
  expect(await ran('worker')).toMatchObject({ status: 'succeeded', output: { result: 'canary-done' } })
  expect(remote.seen.map(seen => header(seen, 'authorization'))).toEqual([
    `Bearer ${KEY}`,
    `Bearer ${BOT}`,
    `Bearer ${KEY}`,
  ])
  const mcpServers = [
    { name: 'far', url: `${remote.origin}/mcp`, headers: { 'x-token': { secretRef: 'secret/token' } }, allow: ['*'] },
  ]
  await control.json(201, 'POST', '/v1/agents', { name: 'mcp', manifest: { mcpServers } })
  await ran('mcp')
  expect(remote.seen.some(seen => seen.url === '/mcp' && header(seen, 'x-token') === SECRET)).toBe(true)
  const kept = await filesOf(folder, 'control')
  for (const canary of [KEY, SECRET, BOT, 'canary-done']) {
    expect(kept).not.toContain(canary)
    expect(lines.join('\n')).not.toContain(canary)
  }
  // The node has them sealed, as all that the run was given and said.
  const there = await filesOf(folder, 'one')
  for (const canary of [KEY, SECRET, BOT, 'canary-done']) expect(there).not.toContain(canary)
})

it('are used within the limits of actions that the budget sets, on all nodes together', async () => {
  const fixtures = [await node('one'), await node('two')]
  await put(provider())
  await put({ connector: { connectorId: 'slack', config: { botToken: BOT, baseUrl: remote.origin } } })
  for (const ref of ['provider/openai', 'connector/slack']) await settled(ref)
  await control.json(201, 'POST', '/v1/agents', {
    name: 'worker',
    manifest: { model: 'openai/gpt-4.1-mini', connectors: ['slack.list_users'] },
  })
  const call = { id: 'c1', type: 'function', function: { name: 'slack__list_users', arguments: '{}' } }
  const told: string[] = []
  remote.always((response, seen, request) => {
    if (!seen.url.includes('chat/completions')) return answer(200, '{"ok":true,"members":[]}')(response, seen, request)
    const { messages } = JSON.parse(seen.body.toString()) as { messages: { role: string; content: unknown }[] }
    const said = messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.stringify(content))
    told.push(...said)
    return says(said.length > 0 ? { content: 'done' } : { tool_calls: [call] })(response, seen, request)
  })
  const vendor = () => remote.seen.filter(({ url }) => url.includes('users.list')).length
  const limited = (budget: object) => control.json(200, 'PUT', '/v1/agents/worker/budget', budget)
  await limited({ toolLimits: { 'slack.list_users': 2 } })
  const runs = await Promise.all(['a', 'b', 'c', 'd'].map(() => ran('worker')))
  expect(new Set(runs.map(({ nodeId }) => nodeId))).toEqual(new Set(fixtures.map(({ identity }) => identity.nodeId)))
  expect(vendor()).toBe(2)
  const refused = told.filter(one => one.includes('tool_limit'))
  expect(refused).toHaveLength(2)
  expect(refused[0]).toContain('slack.list_users may be called 2 times a day by this agent')
  // A soft budget stops nothing, nor does none.
  await limited({ toolLimits: { 'slack.list_users': 2 }, hardFail: false })
  await ran('worker')
  await control.json(204, 'DELETE', '/v1/agents/worker/budget')
  await ran('worker')
  expect(vendor()).toBe(4)
})

it('wait for nodes that are away, come to nodes that enrol later, and are taken away again', async () => {
  const one = await node('one')
  await until(
    async () =>
      (await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${one.identity.nodeId}`)).status === 'online',
    'the node is online',
  )
  one.link.cut()
  expect((await put(provider())).nodes).toEqual([{ nodeId: one.identity.nodeId }])
  one.link.mend()
  await settled('provider/openai')
  const two = await node('two')
  expect((await settled('provider/openai')).nodes.map(({ nodeId }) => nodeId).sort()).toEqual(
    [one, two].map(({ identity }) => identity.nodeId).sort(),
  )
  const has = async (fixture: NodeFixture) => (await fixture.db.execute('select 1 from providers')).rows.length === 1
  expect([await has(one), await has(two)]).toEqual([true, true])
  await control.json(204, 'DELETE', `${PATH}?ref=provider/openai`)
  await until(async () => !(await has(one)) && !(await has(two)), 'both have forgotten it')
  expect(await list()).toEqual([])
  await control.json(404, 'DELETE', `${PATH}?ref=provider/openai`)
})

it('are refused by name: without a node, of no known kind, without the scope, and by the node itself', async () => {
  expect(await control.json(404, 'PUT', PATH, provider())).toMatchObject({
    error: expect.stringContaining('pool default has no enrolled node'),
  })
  await node('one')
  expect(await control.json(400, 'PUT', PATH, { password: 'x' })).toMatchObject({ code: 'validation_failed' })
  expect(await control.json(400, 'PUT', '/v1/secrets/token', { value: SECRET })).toMatchObject({
    error: expect.stringContaining('/v1/pools/{pool}/credentials'),
  })
  const { rawKey } = await control.json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', {
    name: 'settings',
    scopes: ['settings:write'],
  })
  const connector = { connector: { connectorId: 'slack', config: { botToken: BOT } } }
  const refused = await control.call('PUT', PATH, connector, { authorization: `Bearer ${rawKey}` })
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'forbidden_scope' }])
  await put({ provider: { provider: 'openai', apiKey: KEY, baseUrl: 'http://10.0.0.1/v1' } })
  expect((await settled('provider/openai')).nodes[0]?.error).toContain('baseUrl')
})

it('go on being the pool’s after the node is restarted, and end with its last node', async () => {
  const one = await node('one')
  await put({ secret: { name: 'token', value: SECRET } })
  await settled('secret/token')
  await one.kill()
  await one.restart()
  await put(provider())
  await settled('provider/openai')
  await control.json(204, 'DELETE', `/v1/nodes/${one.identity.nodeId}?force=true`)
  const { rows } = await control.db.execute('select 1 from pool_credentials')
  expect(rows).toEqual([])
})

it('hold a secret to its hosts on every node, and a change of them counts there from the next use on', async () => {
  const one = await node('one')
  const thief = await scriptedUpstream()
  try {
    const own = { host: '127.0.0.1', ports: [Number(new URL(remote.origin).port)] }
    const secret = { name: 'token', value: SECRET }
    const publish = (origin: string) => {
      const headers = { 'x-token': { secretRef: 'secret/token' } }
      const mcpServers = [{ name: 'far', url: `${origin}/mcp`, headers, allow: ['*'] }]
      return control.call('POST', '/v1/agents', { name: 'mcp', manifest: { mcpServers } })
    }
    const sentTo = ({ seen }: ScriptedUpstream) => seen.filter(call => header(call, 'x-token') === SECRET).length

    await put({ secret })
    await settled('secret/token')
    expect((await publish(thief.origin)).status).toBe(201)
    await ran('mcp')
    const unbound = sentTo(thief)
    expect(unbound).toBeGreaterThan(0)

    expect(await put({ secret: { ...secret, hosts: [own], tools: ['mcp'] } })).toMatchObject({ hosts: [own] })
    await settled('secret/token')
    expect(await ran('mcp')).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    const refused = await publish(thief.origin)
    expect(await refused.json()).toMatchObject({
      details: [{ path: 'manifest.mcpServers.0.headers.x-token.secretRef' }],
    })

    // A new value keeps the binding, on a node that enrols afterwards as well.
    expect(await put({ secret })).toMatchObject({ hosts: [own], tools: ['mcp'] })
    const two = await node('two')
    await settled('secret/token')
    for (const { db } of [one, two]) {
      const { rows } = await db.execute('select binding from secrets')
      expect(JSON.parse(String(rows[0]?.binding))).toEqual({ hosts: [own], tools: ['mcp'] })
    }
    expect(await ran('mcp')).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(sentTo(thief)).toBe(unbound)
    expect((await publish(remote.origin)).status).toBe(201)
    await ran('mcp')
    expect(sentTo(remote)).toBeGreaterThan(0)

    const lifted = await put({ secret: { ...secret, hosts: null, tools: null } })
    expect([lifted.hosts, lifted.tools]).toEqual([undefined, undefined])
    await settled('secret/token')
    expect((await publish(thief.origin)).status).toBe(201)
    await ran('mcp')
    expect(sentTo(thief)).toBeGreaterThan(unbound)
    await control.json(400, 'PUT', PATH, { secret: { name: 'token', hosts: [own] } })
  } finally {
    await thief.close()
  }
})

it('prices and aliases that the tenant sets hold for runs on nodes, of nodes that come later too', async () => {
  const models = (inPerMTok: number) => ({
    aliases: { 'chat-small': ['openai-compatible/own-model'] },
    prices: { 'openai-compatible/own-model': { inPerMTok, outPerMTok: 0 } },
    windows: {},
  })
  await control.json(200, 'PUT', '/v1/settings/models', models(10))
  await node('one')
  await put({ provider: { provider: 'openai-compatible', apiKey: KEY, baseUrl: remote.origin } })
  await settled('provider/openai-compatible')
  await control.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'chat-small' } })
  await control.json(200, 'PUT', '/v1/agents/worker/budget', { maxCostUsdPerRun: 1, maxCostUsdPerDay: 5 })
  const cost = async () => {
    remote.queue(says({ content: 'done' }))
    const { status, error, tokensIn, costUsd } = await ran('worker')
    expect([status, error]).toEqual(['succeeded', undefined])
    expect(JSON.parse(remote.seen.at(-1)!.body.toString())).toMatchObject({ model: 'own-model' })
    return (costUsd / tokensIn) * 1e6
  }
  expect(await cost()).toBeCloseTo(10)
  await control.json(200, 'PUT', '/v1/settings/models', models(30))
  expect(await cost()).toBeCloseTo(30)
  expect(await list()).toHaveLength(1)
})
