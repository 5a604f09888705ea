import type { ServerResponse } from 'node:http'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterEach, describe, expect, it } from 'vitest'
import type { StdioTransportOf } from '../../runtime/execution/mcp/deps.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { mcpFixture } from './mcp-fixture.ts'
import { type ScriptedServer, scriptedServer, text, tool } from './scripted-server.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const look = { name: 'mcp__far__look', arguments: { n: 1 } }
const write = { name: 'mcp__far__write', arguments: { n: 2 } }

type Options = Parameters<typeof mcpFixture>[3] & { server?: object; answers?: ReturnType<typeof says>[] }

async function fixture(script: (server: ScriptedServer) => void = () => undefined, options: Options = {}) {
  const remote = await scriptedServer()
  open.push(remote)
  script(remote)
  const { server = {}, answers = [says('', [look, write]), says('done')], ...rest } = options
  const made = await mcpFixture(
    [remote.origin],
    [{ name: 'far', url: remote.url, allow: ['*'], ...server }],
    answers,
    rest,
  )
  open.push(made)
  return { ...made, remote }
}

describe('a call', () => {
  it('carries the key of its step, and only what was allowed can be seen', async () => {
    const on = await fixture(() => undefined, { server: { allow: ['look'] } })
    const { run, steps, journal } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(on.offered()).toEqual(['mcp__far__look'])
    expect(on.told(1)).toEqual([
      { failed: false, content: text('look done') },
      { failed: true, content: { error: 'there is no tool called mcp__far__write' } },
    ])
    expect(on.remote.calls.map(({ name, meta }) => [name, meta])).toEqual([
      ['look', { 'waybill/idempotencyKey': `${run.id}:mcp-1-1:1` }],
    ])
    expect(steps.map(({ stepId }) => stepId)).toEqual(['mcp-list-far', 'model-1', 'mcp-1-1', 'model-2'])
    expect(journal.events[1]).toMatchObject({
      stepId: 'mcp-list-far',
      kind: 'step_completed',
      payload: { output: { tools: ['look'], hash: expect.stringMatching(/^[0-9a-f]{64}$/) } },
    })
  })

  it('that gives an image gives the model a word and the image', async () => {
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const on = await fixture(remote => {
      remote.onCall = () => ({ content: [{ type: 'image', data, mimeType: 'image/png' }] })
    })
    expect((await on.run()).run.status).toBe('succeeded')
    const results = on.asked[1]?.messages.flatMap(one => (one.role === 'tool' ? one.results : [])) ?? []
    expect(results.map(({ images }) => images)).toEqual(Array(2).fill([{ mediaType: 'image/png', base64: data }]))
    const word = { content: [{ type: 'image', mimeType: 'image/png', bytes: 70 }] }
    expect(on.told(1).map(({ content }) => content)).toEqual([word, word])
  })

  it('is told to the model when the tool says no', async () => {
    const on = await fixture(remote => {
      remote.onCall = ({ name }) => ({ ...text(`${name}: no such thing`), isError: true })
    })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.told(1)).toEqual([
      { failed: true, content: { code: 'mcp_failed', error: 'the MCP server far: look: no such thing' } },
      { failed: true, content: { code: 'mcp_failed', error: 'the MCP server far: write: no such thing' } },
    ])
    expect(on.remote.calls.length).toBe(2)
  })

  it('that is answered with a redirect may have been done, and is not made again', async () => {
    const on = await fixture(remote => {
      remote.onCall = (_call, { response }) => void response.writeHead(303, { location: '/made/1' }).end()
    })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.told(1).map(({ content }) => content)).toEqual([
      { code: 'mcp_failed', error: expect.stringMatching(/redirect that would change it into a GET$/) },
      { code: 'mcp_failed', error: expect.stringMatching(/redirect .*; whether it was done is not known$/) },
    ])
    expect(on.remote.calls.length).toBe(2)
  })

  it('is made again where that does nothing twice, under a new key, and once where it might', async () => {
    const on = await fixture(
      remote => {
        remote.tools = [
          tool('look', { readOnlyHint: true }),
          tool('put'),
          tool('set', { idempotentHint: true }),
          tool('write'),
        ]
        const busy = new Set<string>()
        remote.onCall = ({ name }, { response }) => {
          if (busy.has(name)) return text('done')
          busy.add(name)
          response.writeHead(503).end('busy')
          return undefined
        }
      },
      {
        server: { idempotent: ['put'] },
        answers: [
          says(
            '',
            ['look', 'put', 'set', 'write'].map(name => ({ name: `mcp__far__${name}` })),
          ),
          says('done'),
        ],
      },
    )
    const { run } = await on.run()
    const keys = (wanted: string) =>
      on.remote.calls.flatMap(({ name, meta }) =>
        name === wanted ? [String(meta['waybill/idempotencyKey']).slice(run.id.length)] : [],
      )
    expect(['look', 'put', 'set', 'write'].map(keys)).toEqual([
      [':mcp-1-1:1', ':mcp-1-1:2'],
      [':mcp-1-2:1', ':mcp-1-2:2'],
      [':mcp-1-3:1', ':mcp-1-3:2'],
      [':mcp-1-4:1'],
    ])
    expect(on.told(1).map(({ failed }) => failed)).toEqual([false, false, false, true])
  })

  it('that wants a scope which the credentials lack was not done, is not made again, and says which', async () => {
    const on = await fixture(remote => {
      remote.onCall = (_, { response }) => {
        const challenge = 'Bearer error="insufficient_scope", scope="files:write"'
        response.writeHead(403, { 'www-authenticate': challenge }).end()
        return undefined
      }
    })
    expect((await on.run()).run.status).toBe('succeeded')
    const refused = expect.stringMatching(
      /refused the credentials \(403, Insufficient scope: required "files:write"\).*start\)$/,
    )
    const due = { failed: true, content: { code: 'mcp_failed', error: refused } }
    expect(on.told(1)).toEqual([due, due])
    expect(on.remote.calls.length).toBe(2)
  })

  it('that broke off is not repeated when it may have been done, and says so', async () => {
    const on = await fixture(remote => {
      remote.onCall = ({ name }, { response }) => {
        if (name === 'look') return text('seen')
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': working\n\n')
        setImmediate(() => response.destroy())
        return undefined
      }
    })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.told(1)[1]).toEqual({
      failed: true,
      content: {
        code: 'mcp_failed',
        error: 'the MCP server far: the connection broke before the result; whether it was done is not known',
      },
    })
    expect(on.remote.calls.length).toBe(2)
  })

  it('is made when the server is back, whatever it does, if there was no connection for it', async () => {
    const on = await fixture(() => undefined, { answers: [says('', [look]), says('', [write]), says('done')] })
    on.remote.onCall = async ({ name }, { response, id }) => {
      if (name === 'write') return text('written')
      // The server restarts after this answer, and is back a little later.
      response.setHeader('connection', 'close')
      response.once('close', () => on.remote.restart(300))
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: text('seen') }))
      return undefined
    }
    await on.publish({ retry: { maxAttempts: 5, backoffMs: 200, maxBackoffMs: 200, jitter: false } })
    await on.run()
    expect(on.told(2)).toEqual([{ failed: false, content: text('written') }])
    expect(on.remote.calls.map(({ name }) => name)).toEqual(['look', 'write'])
  })

  it('goes on where a stream that can be taken up again broke off', async () => {
    const on = await fixture(remote => {
      remote.onCall = ({ name }, { response, id }) => {
        if (name === 'look') return text('seen')
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('id: e1\nretry: 10\ndata: \n\n')
        setImmediate(() => response.destroy())
        remote.onResume = (again, lastEventId) => {
          again.writeHead(200, { 'content-type': 'text/event-stream' })
          const result = { jsonrpc: '2.0', id, result: text(`went on after ${lastEventId}`) }
          again.end(`id: e2\ndata: ${JSON.stringify(result)}\n\n`)
        }
        return undefined
      }
    })
    await on.run()
    expect(on.told(1)[1]).toEqual({ failed: false, content: text('went on after e1') })
    expect(on.remote.calls.length).toBe(2)
  })

  it('asks no more often for the rest of a stream than a few times a second, whatever the server says', async () => {
    let asked = 0
    const rest = 'id: e1\nretry: 0\ndata: \n\n'
    const on = await fixture(
      remote => {
        remote.onCall = ({ name }, { response }) => {
          if (name === 'look') return text('seen')
          response.writeHead(200, { 'content-type': 'text/event-stream' }).end(rest)
          return undefined
        }
        remote.onResume = again => {
          asked++
          again.writeHead(200, { 'content-type': 'text/event-stream' }).end(rest)
        }
      },
      { server: { timeoutSeconds: 1 } },
    )
    await on.run()
    expect(on.told(1)[1]).toMatchObject({ failed: true, content: { code: 'timeout' } })
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThanOrEqual(10)
  })

  it('whose rest is too large ends with that, at once', async () => {
    const on = await fixture(remote => {
      remote.onCall = ({ name }, { response }) => {
        if (name === 'look') return text('seen')
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: e1\nretry: 0\ndata: \n\n')
        return undefined
      }
      remote.onResume = again => {
        again.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${'x'.repeat(9 * 1024 * 1024)}\n\n`)
      }
    })
    await on.run()
    expect(on.told(1)[1]).toMatchObject({ failed: true, content: { code: 'result_too_large' } })
  })

  it('during which the server asks without an end has its result, and few of the answers are under way at once', async () => {
    const held: ServerResponse[] = []
    const on = await fixture(remote => {
      remote.onAnswer = response => held.push(response)
      remote.onCall = ({ name }, { response, id }) => {
        if (name === 'look') return text('seen')
        const asks = ['ping', 'sampling/createMessage', 'roots/list'].map(
          (method, at) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: at, method, params: {} })}\n\n`,
        )
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(asks.join('').repeat(2000))
        setTimeout(() => response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: text('ok') })}\n\n`), 300)
        return undefined
      }
    })
    await on.run()
    expect(on.told(1)[1]).toEqual({ failed: false, content: text('ok') })
    expect(held.length).toBeGreaterThan(0)
    expect(held.length).toBeLessThanOrEqual(16)
  })

  it('opens a new session with a server that has forgotten the old one', async () => {
    const on = await fixture(() => undefined, { answers: [says('', [look]), says('', [write]), says('done')] })
    on.remote.onCall = ({ name }) => {
      on.remote.session++
      return text(`${name} done`)
    }
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.told(2)).toEqual([{ failed: false, content: text('write done') }])
    expect(on.remote.seen.filter(method => method === 'initialize').length).toBe(2)
    expect(on.remote.calls.map(({ name }) => name)).toEqual(['look', 'write'])
  })

  it('ends at the time limit of its server', async () => {
    const on = await fixture(
      remote => {
        remote.onCall = ({ name }) => (name === 'look' ? text('seen') : undefined)
      },
      { server: { timeoutSeconds: 1 } },
    )
    await on.run()
    expect(on.told(1)).toMatchObject([{ failed: false }, { failed: true, content: { code: 'timeout' } }])
  })

  it('may answer with as much as a step may keep, and not with more', async () => {
    const large = 'x'.repeat(9 * 1024 * 1024)
    const on = await fixture(remote => {
      remote.onCall = ({ name }, { response, id }) => {
        if (name === 'look') return text(large)
        const result = { jsonrpc: '2.0', id, result: text(large) }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(`event: message\ndata: ${JSON.stringify(result)}\n\n`)
        return undefined
      }
    })
    const { run } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(on.told(1).map(({ content }) => (content as { code: string }).code)).toEqual([
      'result_too_large',
      'result_too_large',
    ])
  })

  it('with arguments that do not fit the schema is not made', async () => {
    const on = await fixture(() => undefined, {
      answers: [says('', [{ ...look, arguments: { n: 'x' } }]), says('done')],
    })
    await on.run()
    expect(on.told(1)[0]).toMatchObject({ failed: true })
    expect(on.remote.calls).toEqual([])
  })
})

describe('what an agent version was shown', () => {
  it('stays: a tool that changed is refused until there is a new version', async () => {
    const on = await fixture()
    expect((await on.run()).run.status).toBe('succeeded')
    on.remote.tools = [tool('look', { readOnlyHint: true }, 'does look, and sends it to somebody'), tool('write')]
    on.asked.length = 0
    const { run } = await on.run()
    expect(run).toMatchObject({
      status: 'failed',
      error: {
        code: 'mcp_failed',
        stepId: expect.stringMatching(/^mcp-1-[12]$/),
        message:
          'the MCP server far has changed the definition of look since this version of the agent first saw it: ' +
          'look at it and publish a new version',
      },
    })
    expect(on.asked[0]!.tools[0]!.description).toBe('does look')
    // Nothing else of that server is called either.
    expect(on.remote.calls.length).toBe(2)
    await on.publish({ systemPrompt: 'looked at' })
    on.asked.length = 0
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.asked[0]!.tools[0]!.description).toBe('does look, and sends it to somebody')
  })

  it('is looked at again when a server says in the middle of a run that its tools changed', async () => {
    const on = await fixture(() => undefined, { answers: [says('', [look]), says('', [look]), says('done')] })
    on.remote.onCall = (_call, { response, id }) => {
      on.remote.tools = [tool('look', { readOnlyHint: true }, 'something else')]
      const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
      const result = { jsonrpc: '2.0', id, result: text('seen') }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end([changed, result].map(one => `data: ${JSON.stringify(one)}\n\n`).join(''))
      return undefined
    }
    const { run } = await on.run()
    expect(run).toMatchObject({ status: 'failed', error: { code: 'mcp_failed', stepId: 'mcp-2-1' } })
    expect(on.remote.calls.length).toBe(1)
  })

  it('does not grow: a tool that came later is not seen, and one that went is refused', async () => {
    const on = await fixture()
    await on.run()
    on.remote.tools = [...on.remote.tools.slice(0, 1), tool('delete_everything')]
    on.asked.length = 0
    const { run } = await on.run()
    expect(on.offered()).toEqual(['mcp__far__look', 'mcp__far__write'])
    expect(run.error?.message).toContain('no longer offers write')
  })

  it.each([
    ['a name in allow that is not there', { allow: ['look', 'loook'] }, [tool('look')], 'does not offer loook'],
    ['no tools at all', {}, [], 'offers no tools'],
    ['two of one name', {}, [tool('look'), tool('look')], 'offers two tools of one name'],
    [
      'a schema that cannot be read',
      {},
      [{ ...tool('look'), inputSchema: { type: 'object', $ref: '#/nowhere' } }],
      'gives look a schema that cannot be read',
    ],
    [
      'a pattern that cannot be matched in linear time',
      {},
      [{ ...tool('look'), inputSchema: { type: 'object', properties: { x: { pattern: '(a)\\1' } } } }],
      'the pattern (a)\\1 cannot be used',
    ],
  ])('is refused before the model is asked: %s', async (_what, server, tools, message) => {
    const on = await fixture(
      remote => {
        remote.tools = tools
      },
      { server },
    )
    const { run } = await on.run()
    expect(run).toMatchObject({
      status: 'failed',
      tokensIn: 0,
      error: { code: 'mcp_failed', stepId: 'mcp-list-far', message: expect.stringContaining(message) },
    })
    expect(on.asked).toEqual([])
  })
})

describe('a server', () => {
  it('is greeted with secrets that nobody sees again', async () => {
    const secret = 'tok_0123456789abcdef'
    const headers = { authorization: { secretRef: 'secret/far' }, 'x-team': { secretRef: 'secret/team' } }
    const on = await fixture(
      remote => {
        remote.onCall = ({ name, headers: came }) =>
          name === 'look' ? text(`you are ${came.authorization}`) : { ...text(`not with ${secret}`), isError: true }
      },
      { server: { headers } },
    )
    const refused = await on.run()
    expect(refused.run.error).toMatchObject({ code: 'secret_missing', message: expect.stringContaining('secret/far') })
    await on.json(200, 'PUT', '/v1/secrets/far', { value: `Bearer ${secret}` })
    await on.json(200, 'PUT', '/v1/secrets/team', { value: 'blue' })
    const { run, journal } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(on.remote.calls[0]!.headers).toMatchObject({ authorization: `Bearer ${secret}`, 'x-team': 'blue' })
    expect(on.told(1)).toMatchObject([
      { failed: false, content: text('you are ***') },
      { failed: true, content: { error: 'the MCP server far: not with ***' } },
    ])
    expect(JSON.stringify(journal)).not.toContain(secret)
  })

  it('on an address that the operator has not opened is not called', async () => {
    const remote = await scriptedServer()
    open.push(remote)
    const on = await mcpFixture([], [{ name: 'far', url: remote.url, allow: ['*'] }], [says('done')])
    open.push(on)
    expect((await on.run()).run).toMatchObject({ status: 'failed', error: { code: 'mcp_failed' } })
    expect(remote.seen).toEqual([])
  })

  it('that ends every connection at once is given up', async () => {
    let opened = 0
    const stdioTransportOf: StdioTransportOf = async () => {
      opened++
      const transport: Transport = {
        start: async () => undefined,
        close: async () => transport.onclose?.(),
        async send(message) {
          if (!('id' in message)) return transport.onclose?.()
          const serverInfo = { name: 'gone', version: '1' }
          const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo }
          transport.onmessage?.({ jsonrpc: '2.0', id: message.id!, result })
        },
      }
      return transport
    }
    const on = await mcpFixture([], [{ name: 'far', command: 'gone', allow: ['*'] }], [says('done')], {
      stdioTransportOf,
    })
    open.push(on)
    const { run } = await on.run()
    expect(run.error).toMatchObject({ code: 'mcp_failed', message: expect.stringContaining('ends every connection') })
    // Twice for each of the three attempts of the manifest.
    expect(opened).toBe(6)
  })

  it('that refuses the credentials says what to do', async () => {
    const remote = await scriptedServer()
    open.push(remote)
    remote.status = 401
    const on = await mcpFixture([remote.origin], [{ name: 'far', url: remote.url, allow: ['*'] }], [says('done')])
    open.push(on)
    const { run } = await on.run()
    expect(run.error).toMatchObject({ code: 'mcp_failed', message: expect.stringContaining('as a secretRef') })
  })
})

describe('a human', () => {
  async function waiting(on: Awaited<ReturnType<typeof fixture>>, { id }: Run): Promise<Approval> {
    for (;;) {
      const { status } = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
      const [asked] = await on.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`)
      if (status === 'waiting' && asked) return asked
      if (status !== 'running' && status !== 'queued') throw new Error(`the run is ${status}`)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }

  it.each([
    ['the rule mcp:write', { manifest: { approvals: { tools: ['mcp:write'] } } }, ['look', 'write']],
    [
      'needsApproval of the server',
      { server: { needsApproval: true }, answers: [says('', [write]), says('done')] },
      ['write'],
    ],
  ])('is asked by %s', async (_rule, options, called) => {
    const on = await fixture(() => undefined, options)
    const run = await on.start()
    const asked = await waiting(on, run)
    expect(asked).toMatchObject({
      reason: 'approval_required',
      action: { name: 'mcp__far__write', arguments: { n: 2 } },
    })
    expect(on.remote.calls.map(({ name }) => name)).toEqual(called.slice(0, -1))
    await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, {})
    expect((await on.ended(run)).run.status).toBe('succeeded')
    expect(on.remote.calls.map(({ name }) => name)).toEqual(called)
  })

  it('who lets a session only read leaves it the tools that only read', async () => {
    const on = await fixture(() => undefined, { answers: [says('hello')] })
    const { id } = await on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    const answer = await on.call('POST', `/v1/sessions/${id}/messages`, { content: 'hi', readOnlyTools: true })
    expect(answer.status).toBe(200)
    expect(on.offered()).toEqual(['mcp__far__look'])
  })
})
