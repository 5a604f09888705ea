import * as newest from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api, KEY } from '../runtime/api.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function fixture(): Promise<Api> {
  const made = await api()
  open.push(made)
  const manifest = { tools: ['ask_human', 'wait'] }
  await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
  return made
}

const ADDRESS = new URL('http://localhost/mcp')

type Options = Pick<newest.StreamableHTTPClientTransportOptions, 'fetch' | 'requestInit'>

/** The official clients, whose requests go straight to the runtime. */
const CLIENTS = {
  async 'the first SDK'(options: Options) {
    const made = new Client({ name: 'test', version: '1' })
    await made.connect(new StreamableHTTPClientTransport(ADDRESS, options))
    return made
  },
  'the second SDK, by itself': (options: Options) => second(options, 'auto'),
  'the second SDK, 2026-07-28 alone': (options: Options) => second(options, { pin: '2026-07-28' }),
}

async function second(options: Options, mode: newest.VersionNegotiationMode) {
  const made = new newest.Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await made.connect(new newest.StreamableHTTPClientTransport(ADDRESS, options))
  expect(made.getNegotiatedProtocolVersion()).toBe('2026-07-28')
  return made
}

async function clientOf(connect: (typeof CLIENTS)[keyof typeof CLIENTS], { runtime }: Api, key = KEY) {
  const made = await connect({
    fetch: (url, init) => runtime.fetch(new Request(url, init)),
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  open.push(made)
  return {
    made,
    names: async () => (await made.listTools()).tools.map(({ name }) => name),
    async call(name: string, given: object = {}, meta?: object) {
      const params = { name, arguments: { ...given }, ...(meta && { _meta: { ...meta } }) }
      const { content, structuredContent, isError } = await made.callTool(params)
      const [{ text }] = content as [{ text: string }]
      return { text, found: structuredContent as Record<string, unknown>, failed: isError === true }
    },
  }
}

const keyWith = async ({ json }: Api, scopes: string[]) =>
  (await json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', { name: 'k', scopes })).rawKey

/** A message as no client of an SDK sends it. */
const post = ({ runtime }: Api, body: string, headers: Record<string, string>) =>
  runtime.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body,
    }),
  )

describe.each(Object.entries(CLIENTS))('the runtime as an MCP server of %s', (_, connect) => {
  const client = (on: Api, key?: string) => clientOf(connect, on, key)

  it('starts a run, follows it, and decides what it waits for', async () => {
    const on = await fixture()
    const { call, made } = await client(on)
    expect(made.getServerVersion()).toMatchObject({ name: 'waybill-runtime' })
    expect((await call('list_agents')).found).toMatchObject({ items: [{ name: 'worker' }] })
    expect((await call('get_agent', { name: 'worker' })).found).toMatchObject({ manifest: { model: 'auto' } })
    const prompt = '/call ask_human {"prompt":"which one?"}'
    const started = await call('start_run', { agentName: 'worker', input: { prompt }, labels: { from: 'mcp' } })
    expect(started.found).toMatchObject({ status: 'queued', labels: { from: 'mcp' } })
    const id = String(started.found.id)
    let waiting: unknown[] = []
    while (waiting.length === 0) {
      const { found } = await call('list_approvals', { status: 'pending', runId: id })
      waiting = found.items as unknown[]
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    const [{ id: approvalId }] = waiting as [{ id: string }]
    expect((await call('approve', { id: approvalId, output: 'the second' })).found).toMatchObject({
      status: 'approved',
    })
    await (await on.call('GET', `/v1/runs/${id}/events`)).text()
    expect((await call('get_run', { id })).found).toMatchObject({ id, status: 'succeeded' })
    const { found: steps } = await call('list_steps', { id })
    expect((steps.items as { kind: string }[]).map(({ kind }) => kind)).toContain('approval')
    const again = await call('reject', { id: approvalId })
    expect([again.failed, again.text]).toEqual([true, expect.stringContaining('(approval_decided)')])
    expect((await call('cancel_run', { id })).text).toContain('(run_terminal)')
  })

  it('cuts what is long in a list of runs, and not in a run', async () => {
    const on = await fixture()
    const { call } = await client(on)
    const long = { prompt: 'long 👋 '.repeat(20_000) }
    const { found: started } = await call('start_run', { agentName: 'worker', input: long })
    await (await on.call('GET', `/v1/runs/${started.id}/events`)).text()
    const { found, text } = await call('list_runs')
    expect(text.length).toBeLessThan(10_000)
    const [listed] = found.items as [Record<string, unknown>]
    expect(listed).toMatchObject({ id: started.id, status: 'succeeded', labels: {} })
    expect(listed.input).toMatch(/^\{"prompt":"long 👋 .*… \(\d+ characters in all: get_run has them\)$/)
    expect((await call('get_run', { id: started.id })).found).toMatchObject({ input: long })
  })

  it('offers a key what its scopes let it do, and refuses the rest in the words of the API', async () => {
    const on = await fixture()
    const { names, call } = await client(on, await keyWith(on, ['agents:read', 'runs:read']))
    expect(await names()).toEqual(['list_agents', 'get_agent', 'get_run', 'list_runs', 'list_steps', 'list_approvals'])
    const { text, failed } = await call('start_run', { agentName: 'worker' })
    expect([failed, text]).toEqual([true, expect.stringContaining('(forbidden_scope)')])
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs')).toEqual([])
    expect((await (await client(on)).names()).length).toBe(10)
  })

  it('knows nobody without a key', async () => {
    const on = await fixture()
    await expect(client(on, 'wb_live_nobody')).rejects.toThrow(/the API key is not valid|requires authorization/)
    const post = (body: string) =>
      on.runtime.fetch(
        new Request('http://localhost/mcp', { method: 'POST', body, headers: { authorization: `Bearer ${KEY}` } }),
      )
    expect((await post('{')).status).toBe(400)
    expect((await post('x'.repeat(2_000_000))).status).toBe(413)
    expect((await on.runtime.fetch(new Request('http://localhost/mcp'))).status).toBe(405)
  })

  it('starts one run for one key of a step, however often it is called', async () => {
    const on = await fixture()
    const { call } = await client(on)
    const start = () => call('start_run', { agentName: 'worker' }, { 'waybill/idempotencyKey': 'run:mcp-1-1:1' })
    const [first, second] = [await start(), await start()]
    expect(first.found.id).toBe(second.found.id)
    expect((await on.json<Run[]>(200, 'GET', '/v1/runs')).length).toBe(1)
  })

  it('says what is wrong with a call, and pages through lists', async () => {
    const on = await fixture()
    const { call } = await client(on)
    expect((await call('start_run', { agent: 'worker' })).text).toContain('agent')
    expect((await call('nothing')).text).toContain('there is no tool called nothing')
    expect((await call('get_run', { id: '..' })).text).toContain('(not_found)')
    expect((await call('get_run', { id: '../agents' })).text).toContain('(not_found)')
    for (let n = 0; n < 3; n++) await call('start_run', { agentName: 'worker' })
    const { found } = await call('list_runs', { limit: 2 })
    const { found: rest } = await call('list_runs', { limit: 2, cursor: String(found.nextCursor) })
    expect([(found.items as unknown[]).length, (rest.items as unknown[]).length]).toEqual([2, 1])
    expect(rest.nextCursor).toBeUndefined()
  })

  it('may be called from a page of another origin, with each header that it sends', async () => {
    const origin = 'https://app.example.com'
    const on = await api({ corsOrigins: [origin] })
    open.push(on)
    const sent = new Set<string>()
    const made = await connect({
      fetch: (url, init) => {
        const request = new Request(url, init)
        for (const name of request.headers.keys()) sent.add(name)
        return on.runtime.fetch(request)
      },
      requestInit: { headers: { authorization: `Bearer ${KEY}` } },
    })
    open.push(made)
    await made.callTool({ name: 'list_agents', arguments: {} })
    const headers = { origin, 'access-control-request-method': 'POST' }
    const { headers: allowed } = await on.runtime.fetch(new Request(ADDRESS, { method: 'OPTIONS', headers }))
    const names = allowed.get('access-control-allow-headers')?.split(', ') ?? []
    expect([...sent].filter(name => !names.includes(name))).toEqual([])
  })

  it('of another tenant shows nothing', async () => {
    const on = await fixture()
    const { found: mine } = await (await client(on)).call('start_run', { agentName: 'worker' })
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${id}/api-keys`, { name: 'k' })
    const { call } = await client(on, rawKey)
    expect((await call('list_runs')).found).toEqual({ items: [] })
    expect((await call('get_run', { id: mine.id })).text).toContain('(forbidden_tenant)')
  })

  it.each([
    [undefined, 200],
    ['https://app.example.com', 200],
    ['https://waybill.example.com', 200],
    ['http://localhost', 403],
    ['https://evil.example.com', 403],
    ['null', 403],
  ])('answers a right key from the origin %s with %i', async (origin, status) => {
    const on = await api({ corsOrigins: ['https://app.example.com'], publicUrl: 'https://waybill.example.com/' })
    open.push(on)
    const answer = await post(on, '{"jsonrpc":"2.0","id":1,"method":"ping"}', {
      ...(origin !== undefined && { origin }),
    })
    expect([answer.status, status === 403 && (await answer.json())]).toEqual([
      status,
      status === 403 &&
        expect.objectContaining({ code: 'csrf', error: expect.stringContaining('PLATFORM_CORS_ORIGINS') }),
    ])
  })

  it('starts nothing with a number that it would change, and says where it stands', async () => {
    const on = await fixture()
    const args = '{"agentName": "worker", "input": {"prompt": "go", "id": 1234567890123456789}}'
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"start_run","arguments":${args}}}`
    const answer = await post(on, body, { 'mcp-protocol-version': '2025-06-18' })
    expect(await answer.json()).toMatchObject({
      result: {
        isError: true,
        content: [
          { text: expect.stringContaining('the number 1234567890123456789 at /params/arguments/input/id is beyond') },
        ],
      },
    })
    expect(await on.json(200, 'GET', '/v1/runs')).toEqual([])
  })
})

it('has nothing to subscribe to, and says so at once', async () => {
  const on = await fixture()
  const client = (await clientOf(CLIENTS['the second SDK, by itself'], on)).made as newest.Client
  await expect(client.listen({ toolsListChanged: true })).rejects.toThrow('Subscription limit reached')
})
