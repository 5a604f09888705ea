import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { inputRequired } from '@modelcontextprotocol/server'
import { afterEach, describe, expect, it } from 'vitest'
import type { ModelAnswer } from '../../runtime/execution/models/model.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import { mcpFixture } from './mcp-fixture.ts'
import { newestServer } from './newest-server.ts'
import { testOnlyChildProcess } from './real-servers.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function fixture(onCall: Parameters<typeof newestServer>[0], answers: ModelAnswer[]) {
  const server = await newestServer(onCall)
  open.push(server)
  const servers = [{ name: 'new', url: server.url, allow: ['*'], timeoutSeconds: 5 }]
  const made = await mcpFixture([server.origin], servers, answers)
  open.push(made)
  return { ...made, server }
}

const placed = (args: Record<string, unknown>) => [
  says('', [{ name: 'mcp__new__place', arguments: args }]),
  says('done'),
]

describe('a server that speaks the revision of 2026-07-28 alone', () => {
  it('is used inside a run, with the key of the step and the headers that its tools name', async () => {
    const keys: unknown[] = []
    const { run, offered, told, server } = await fixture(
      ({ arguments: args, _meta }) => {
        keys.push(_meta?.['waybill/idempotencyKey'])
        return { content: [{ type: 'text', text: 'placed' }], structuredContent: { amount: args!.amount } }
      },
      placed({ region: 'eu-west', amount: 3 }),
    )
    const first = await run()
    expect(first.run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(offered()).toEqual(['mcp__new__look', 'mcp__new__place'])
    expect(told(1)).toMatchObject([{ failed: false, content: { structuredContent: { amount: 3 } } }])
    expect(keys).toEqual([expect.stringContaining('mcp-1-1')])
    expect(server.seen.map(({ method }) => method)).toEqual([
      'initialize',
      'server/discover',
      'tools/list',
      'tools/call',
    ])
    const call = server.seen.at(-1)!.headers
    expect([call.get('mcp-protocol-version'), call.get('mcp-param-region')]).toEqual(['2026-07-28', 'eu-west'])
  })

  it('gives a number beyond 2^53 as its digits', async () => {
    const digits = '1234567890123456789'
    const amount = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits)
    const { run, told } = await fixture(
      () => ({ content: [], structuredContent: { amount } }),
      placed({ region: 'eu' }),
    )
    expect((await run()).run.status).toBe('succeeded')
    expect(told(1)).toMatchObject([{ failed: false, content: { structuredContent: { amount: digits } } }])
  })

  it('that wants input of a person before it answers gets none, and the model learns why', async () => {
    const sure = inputRequired.elicit({ message: 'sure?', requestedSchema: { type: 'object', properties: {} } })
    const { run, told, server } = await fixture(
      () => inputRequired({ inputRequests: { sure } }),
      [...placed({ region: 'eu' }).slice(0, 1), ...placed({ region: 'us' })],
    )
    // The SDK of the server sees that this client answers no questions; one without it may ask all the same.
    server.onSecondCall = { resultType: 'input_required', inputRequests: { sure } }
    expect((await run()).run.status).toBe('succeeded')
    expect(told(1)).toMatchObject([{ failed: true, content: { error: expect.stringContaining('capabilities') } }])
    const error = 'the MCP server new: wants input of a person, which an agent cannot give'
    expect(told(2)).toMatchObject([{ failed: true, content: { code: 'mcp_failed', error } }])
  })

  it('is started as a command too', async () => {
    const program = fileURLToPath(new URL('newest-stdio.ts', import.meta.url))
    const made = await mcpFixture(
      [],
      [{ name: 'new', command: process.execPath, args: [program], allow: ['look'] }],
      [says('', [{ name: 'mcp__new__look', arguments: {} }]), says('done')],
      { stdioTransportOf: testOnlyChildProcess },
    )
    open.push(made)
    expect((await made.run()).run.status).toBe('succeeded')
    expect(made.told(1)).toMatchObject([{ failed: false, content: { content: [{ text: 'seen' }] } }])
  })
})

describe('a server that refuses the greeting', () => {
  /** Refuses `initialize` like this, and whatever comes then like that. */
  async function refusing(then: 'silence' | number) {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', chunk => (body += chunk))
      request.on('end', () => {
        if (body.includes('"initialize"')) return response.writeHead(400).end('no greeting here')
        if (then !== 'silence') response.writeHead(then).end('nothing')
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const servers = [{ name: 'odd', url: `${origin}/mcp`, allow: ['*'], timeoutSeconds: 1 }]
    const made = await mcpFixture([origin], servers, [says('done')])
    open.push({ close: async () => void server.close() }, made, {
      close: async () => server.closeAllConnections(),
    })
    return made
  }

  it('and knows nothing newer is reported with what it said of the greeting', async () => {
    const { run } = await (await refusing(400)).run()
    expect(run.error).toMatchObject({ code: 'mcp_failed', message: expect.stringContaining('no greeting here') })
  })

  it('and then says nothing is given up at its time limit', async () => {
    const { run } = await (await refusing('silence')).run()
    expect(run.error?.message).toBe('mcp__odd took longer than 1000 ms')
  })
})
