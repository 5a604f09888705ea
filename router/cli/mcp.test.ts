import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import * as newest from '@modelcontextprotocol/client'
import { StdioClientTransport as NewestTransport } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport, type StdioServerParameters } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { type McpToolName, mcpTools } from '../../shared/wire/router/mcp.ts'
import { eventually } from '../../tests/eventually.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { createRouter } from '../router.ts'

const main = new URL('main.ts', import.meta.url).pathname

describe('router mcp', () => {
  let folder: string
  let id: string
  let client: Client
  let transport: StdioClientTransport
  let command: StdioServerParameters
  let log = ''

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-mcp-'))
    const file = join(folder, 'router.db')
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('hi', 'claude-haiku-4-5'))))
    const db = await openDb(file)
    const router = createRouter({ db, env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
    const got = await router.fetch(
      new Request('http://router/v1/messages', { method: 'POST', body: '{"model":"auto"}' }),
    )
    await got.text()
    id = got.headers.get('x-router-trace-id')!
    await router.close()
    db.close()
    await upstream.close()
    command = {
      command: process.execPath,
      args: [main, 'mcp', '--db', file],
      cwd: folder,
      stderr: 'pipe',
      env: { PATH: process.env.PATH ?? '' },
    }
    transport = new StdioClientTransport(command)
    transport.stderr?.on('data', chunk => (log += chunk))
    client = new Client({ name: 'test', version: '1' })
    await client.connect(transport)
  })
  afterAll(async () => {
    await client?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('lists all nine tools with their schemas', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(Object.keys(mcpTools))
    for (const tool of tools) expect([tool.inputSchema.type, tool.outputSchema?.type]).toEqual(['object', 'object'])
  })

  // The client checks each structured answer against the schema that was listed.
  it.each<[McpToolName, Record<string, unknown>]>([
    ['list_traces', { limit: 5 }],
    ['get_trace', {}],
    ['get_savings', { group: 'day' }],
    ['get_evals', {}],
    ['explain_route', {}],
    ['verify_receipts', { limit: 10 }],
    ['list_modes', {}],
    ['submit_feedback', { gate_id: 'ci', verdict: 'pass', reporter: 'ci' }],
  ])('answers %s', async (name, input) => {
    const wantsTrace = ['get_trace', 'explain_route', 'submit_feedback'].includes(name)
    const result = await client.callTool({ name, arguments: { ...input, ...(wantsTrace && { trace_id: id }) } })
    expect(result.isError).toBeFalsy()
    mcpTools[name].output.parse(result.structuredContent)
  })

  it('rehearses a start and a config, and refuses what it does not know', async () => {
    const rehearsed = await client.callTool({ name: 'rehearse_policy', arguments: { start_rung: 1 } })
    expect(rehearsed.isError, JSON.stringify(rehearsed.content)).toBeFalsy()
    expect(mcpTools.rehearse_policy.output.parse(rehearsed.structuredContent)).toMatchObject({ coverage: 0 })
    const config = await client.callTool({
      name: 'rehearse_policy',
      arguments: { policy_toml: 'version = 1\nrute = 1' },
    })
    expect(config).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('policy_toml:2') }] })
    const unknown = await client.callTool({ name: 'get_trace', arguments: { trace_id: 'nothing' } })
    expect(unknown).toMatchObject({ isError: true, content: [{ text: 'there is no trace with the id nothing' }] })
  })

  it('reads resources', async () => {
    expect((await client.listResources()).resources).toHaveLength(3)
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1)
    const { contents } = await client.readResource({ uri: `router://traces/${id}` })
    expect(JSON.parse(String((contents[0] as { text: string }).text))).toMatchObject({ trace: { trace_id: id } })
    await expect(client.readResource({ uri: 'router://traces/nothing' })).rejects.toThrow('there is no resource')
  })

  it('answers a client that speaks the revision of 2026-07-28 alone', async () => {
    const versionNegotiation = { mode: { pin: '2026-07-28' } }
    const second = new newest.Client({ name: 'test', version: '1' }, { versionNegotiation })
    const over = new NewestTransport(command)
    await second.connect(over)
    const { pid } = over
    expect((await second.listTools()).tools).toHaveLength(Object.keys(mcpTools).length)
    expect((await second.callTool({ name: 'get_trace', arguments: { trace_id: id } })).isError).toBeFalsy()
    await expect(second.readResource({ uri: 'router://traces/nothing' })).rejects.toThrow('there is no resource')
    await second.close()
    await eventually(() => expect(() => process.kill(pid!, 0)).toThrow())
  })

  it('answers what a script asked before it closed the input, and keeps its report', async () => {
    const { command: program, args, cwd, env } = command
    const child = spawn(program, args ?? [], { cwd: String(cwd), env, stdio: ['pipe', 'pipe', 'ignore'] })
    const report = { trace_id: id, gate_id: 'script', verdict: 'pass', reporter: 'script' }
    const clientInfo = { name: 'script', version: '1' }
    const asked = [
      { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'submit_feedback', arguments: report } },
    ]
    child.stdin.end(asked.map(one => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join(''))
    const lines = (await text(child.stdout)).trim().split('\n')
    expect(lines.map(line => JSON.parse(line))).toMatchObject([
      { id: 1 },
      { id: 2, result: { structuredContent: { status: 'recorded' } } },
    ])
  })

  it('ends when its client goes, and has said nothing', async () => {
    const { pid } = transport
    await client.close()
    await eventually(() => expect(() => process.kill(pid!, 0)).toThrow())
    expect(log).toBe('')
  })
})
