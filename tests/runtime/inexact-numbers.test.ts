import { afterEach, describe, expect, it } from 'vitest'
import { inexactNumbers } from '../../shared/json/exact-numbers.ts'
import { scriptedServer } from '../mcp/scripted-server.ts'
import { completionFrames, completionOf, event, messageFrames, messageOf } from '../upstream/frames.ts'
import { answer, type Script, stream } from '../upstream/scripted.ts'
import { providerFixture } from './provider-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const BIG = '1234567890123456789'
/** As a reader with doubles has it, in digits and as the engine writes it. */
const ROUNDED = /123456789012345676\d|12345678901234568\d\d/

interface Call {
  name: string
  /** As the model writes them. */
  arguments: string
}

/** How each dialect says a turn: with calls, or with a text. */
const dialects: Record<
  string,
  { model: string; calls: (calls: readonly Call[]) => Script; text: (text: string) => Script }
> = {
  'messages, streamed': {
    model: 'anthropic/claude-3-5-haiku-20241022',
    calls: list => {
      const [start = '', ...rest] = messageFrames(messageOf([{ type: 'tool_use', id: '', name: '', input: {} }]))
      const blocks = list.flatMap(({ name, arguments: given }, index) => [
        event('content_block_start', {
          index,
          content_block: { type: 'tool_use', id: `toolu_${index}`, name, input: {} },
        }),
        ...[given.slice(0, 12), given.slice(12)].map(partial_json =>
          event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } }),
        ),
        event('content_block_stop', { index }),
      ])
      return stream([start, ...blocks, ...rest.slice(-2)])
    },
    text: text => stream(messageFrames(messageOf([{ type: 'text', text }]))),
  },
  'messages, whole': {
    model: 'anthropic/claude-3-5-haiku-20241022',
    calls: list => {
      const blocks = list.map(({ name }, n) => ({ type: 'tool_use', id: `toolu_${n}`, name, input: `@${n}` }))
      const body = JSON.stringify(messageOf(blocks))
      return answer(
        200,
        list.reduce((text, call, n) => text.replace(`"@${n}"`, call.arguments), body),
      )
    },
    text: text => answer(200, JSON.stringify(messageOf([{ type: 'text', text }]))),
  },
  'chat, streamed': {
    model: 'openai-compatible/m',
    calls: list => stream(completionFrames(completionOf([{ tool_calls: list.map(toChat) }]))),
    text: content => stream(completionFrames(completionOf([{ content }]))),
  },
  'chat, whole': {
    model: 'openai-compatible/m',
    calls: list => answer(200, JSON.stringify(completionOf([{ tool_calls: list.map(toChat) }]))),
    text: content => answer(200, JSON.stringify(completionOf([{ content }]))),
  },
}

const toChat = (call: Call, n: number) => ({ id: `call_${n}`, type: 'function', function: call })

async function fixture() {
  const made = await providerFixture()
  open.push(made)
  for (const provider of ['anthropic', 'openai-compatible']) await made.configure(provider)
  return made
}

async function withTools() {
  const remote = await scriptedServer()
  open.push(remote)
  const schema = (id: object) => ({ type: 'object', properties: { id }, required: ['id'], additionalProperties: false })
  remote.tools = [
    { name: 'find', inputSchema: schema({ type: ['string', 'integer'] }) },
    { name: 'count', inputSchema: schema({ type: 'integer' }) },
  ]
  const mcpServers = [{ name: 'far', url: remote.url, allow: ['*'] }]
  return { remote, manifest: { mcpServers }, on: await fixture() }
}

describe.each(Object.entries(dialects))('a call with an integer beyond 2^53 (%s)', (_, { model, calls, text }) => {
  it('is not made, and the model is told where the integer stands and what to do', async () => {
    const { remote, manifest, on } = await withTools()
    on.remote.queue(
      calls([
        { name: 'mcp__far__find', arguments: `{"id": ${BIG}}` },
        { name: 'mcp__far__count', arguments: `{"id": ${BIG}}` },
        { name: 'mcp__far__find', arguments: '{"id": 9007199254740992}' },
      ]),
      calls([{ name: 'mcp__far__find', arguments: `{"id": "${BIG}"}` }]),
      text('done'),
    )
    const { run } = await on.ran(model, manifest)
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(remote.calls.map(call => [call.name, call.arguments])).toEqual([
      ['find', { id: 2 ** 53 }],
      ['find', { id: BIG }],
    ])
    const told = on.remote.seen[1]?.body.toString() ?? ''
    expect(told).toContain(`the number ${BIG} at /id is beyond 2^53 and would be changed: give it as a string`)
    expect(told).toContain('the schema takes no string at /id, so such a value cannot be given there')

    const journal = await (await on.call('GET', `/v1/runs/${run.id}/journal`)).text()
    expect(journal).toContain(BIG)
    for (const written of [journal, ...on.remote.seen.map(({ body }) => body.toString())]) {
      expect(written).not.toMatch(ROUNDED)
      expect(inexactNumbers(written)).toEqual([])
    }
    const receipt = await on.json<object>(200, 'GET', `/v1/runs/${run.id}/receipt`)
    expect(await on.json(200, 'POST', '/v1/runs/receipts/verify', { receipt })).toMatchObject({ valid: true })
  })

  it('is not made either with arguments that no reader follows down, whatever the schema takes', async () => {
    const { remote, manifest, on } = await withTools()
    remote.tools = [{ name: 'any', inputSchema: { type: 'object' } }]
    // A whole answer of messages is read down to 500 levels.
    const deep = model.startsWith('anthropic') ? 450 : 9000
    const nested = (levels: number) => `{"x":${'['.repeat(levels)}${']'.repeat(levels)}}`
    on.remote.queue(
      calls([300, 400, deep].map(levels => ({ name: 'mcp__far__any', arguments: nested(levels) }))),
      text('done'),
    )
    const { run } = await on.ran(model, manifest)
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(remote.calls.map(call => call.arguments)).toEqual([JSON.parse(nested(300))])
    expect(on.remote.seen[1]?.body.toString()).toContain('was not called: these arguments are nested too deep')

    const again = { outputSchema: { type: 'object' }, outputRepairs: 1 }
    on.remote.queue(
      calls([{ name: 'final_answer', arguments: nested(deep) }]),
      calls([{ name: 'final_answer', arguments: '{"id":1}' }]),
    )
    expect((await on.ran(model, again)).run).toMatchObject({ status: 'succeeded', output: { id: 1 } })
  })

  it('as the answer of an output schema is asked for again, and never recorded as another one', async () => {
    const on = await fixture()
    const outputSchema = { type: 'object', properties: { id: { type: ['string', 'integer'] } }, required: ['id'] }
    // Each of them is asked for the answer by a tool.
    on.remote.queue(
      calls([{ name: 'final_answer', arguments: `{"id": ${BIG}}` }]),
      calls([{ name: 'final_answer', arguments: `{"id": "${BIG}"}` }]),
    )
    const { run } = await on.ran(model, { outputSchema, outputRepairs: 1 })
    expect(run).toMatchObject({ status: 'succeeded', output: { id: BIG } })
    expect(on.remote.seen[1]?.body.toString()).toContain(`the number ${BIG} at /id is beyond 2^53`)

    on.remote.queue(text(`{"id": ${BIG}}`))
    const integer = { ...outputSchema, properties: { id: { type: 'integer' } } }
    const refused = await on.ran(model, { outputSchema: integer, outputRepairs: 0 })
    expect(refused.run).toMatchObject({
      status: 'failed',
      error: { code: 'output_invalid', message: expect.stringContaining('the schema takes no string at /id') },
    })
    expect(JSON.stringify(refused)).not.toMatch(ROUNDED)
  })
})

describe('the result of a tool of an MCP server', () => {
  const result = `{"content": [{"type": "text", "text": "{\\"id\\": ${BIG}}"}], "structuredContent": {"id": ${BIG}, "n": 7}}`

  it.each(['a whole answer', 'a stream', 'a stream that was taken up again'])('keeps its digits in %s', async kind => {
    const { remote, manifest, on } = await withTools()
    remote.tools = [{ name: 'find', inputSchema: { type: 'object', properties: { id: { maximum: 2 ** 64 } } } }]
    remote.onCall = (_, { response, id }) => {
      const message = `{"jsonrpc": "2.0", "id": ${JSON.stringify(id)}, "result": ${result}}`
      const type = { 'content-type': kind === 'a whole answer' ? 'application/json' : 'text/event-stream' }
      response.writeHead(200, type)
      if (kind === 'a whole answer') response.end(message)
      else if (kind === 'a stream') response.end(`id: ${BIG}\ndata: ${message}\n\n`)
      else {
        response.write(`id: ${BIG}\nretry: 10\ndata: \n\n`)
        setImmediate(() => response.destroy())
        remote.onResume = (again, last) => {
          expect(last).toBe(BIG)
          again.writeHead(200, type).end(`id: e2\ndata: ${message}\n\n`)
        }
      }
      return undefined
    }
    const { calls, model, text } = dialects['chat, whole']!
    on.remote.queue(calls([{ name: 'mcp__far__find', arguments: '{"id": 1}' }]), text('done'))
    const { run } = await on.ran(model, manifest)
    expect(run.status).toBe('succeeded')
    const told = on.remote.seen[1]?.body.toString() ?? ''
    expect(told).not.toMatch(ROUNDED)
    const { messages } = JSON.parse(told) as { messages: { role: string; content: string }[] }
    const content = messages.find(({ role }) => role === 'tool')?.content ?? ''
    expect(JSON.parse(content)).toEqual({
      content: [{ type: 'text', text: `{"id": ${BIG}}` }],
      structuredContent: { id: BIG, n: 7 },
    })
    expect(await (await on.call('GET', `/v1/runs/${run.id}/journal`)).text()).not.toMatch(ROUNDED)
  })
})
