import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chatAnswer, chatFrames, messagesAnswer } from '../upstream/answers.ts'
import { event as eventOf } from '../upstream/frames.ts'
import { failedFrames, responsesAnswer, responsesFrames } from '../upstream/responses.ts'
import { answer, type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let running: ServedRouter | undefined
beforeEach(async () => {
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  await running?.stop()
  running = undefined
  await upstream.close()
})

/** Two providers that take the Responses API, and two models at the first. */
async function start(route: string, more = ''): Promise<OpenAI> {
  const provider = (id: string) =>
    `{ id = "${id}", dialect = "chat", responses = true, base_url = "${upstream.origin}/${id}", auth = "none" }`
  const price = (model: string, usd: number) =>
    `{ model = "${model}", input_per_mtok = ${usd}, output_per_mtok = ${usd * 5} }`
  running = await servedRouter({
    env: { ROUTER_UPSTREAM_CHAT: upstream.origin },
    config: `
price = [${price('a/small', 1)}, ${price('a/large', 10)}, ${price('b/other', 5)}]
provider = [${provider('a')}, ${provider('b')}]
${more}
[[route]]
match = { api = "responses" }
mode = "enforce"
${route}
`,
  })
  return new OpenAI({ apiKey: 'sk-test', baseURL: `${running.origin}/v1`, maxRetries: 0 })
}

async function receipts() {
  const stopped = await running!.stop()
  running = undefined
  return stopped.receipts
}

const LADDER = 'ladder = ["a/small", "a/large"]\ngates = ["non-empty"]'
const json = (value: object, status = 200) => upstream.queue(answer(status, JSON.stringify(value)))
const made = (id: string, text: string) => ({ ...responsesAnswer(text), id })
/** An answer without a word in it. */
const empty = (id: string) => ({ ...responsesAnswer(''), id, output: [] })
const sentModels = () => upstream.seen.map(({ url, body }) => `${url} ${String(JSON.parse(String(body)).model)}`)

describe('an enforced call of the Responses API', () => {
  it('goes up the ladder with nothing but the model changed, and comes back with the bytes of the provider', async () => {
    const client = await start(LADDER)
    json(empty('resp_1'))
    const whole = JSON.stringify(made('resp_2', 'A cat.'), null, 1)
    upstream.queue(answer(200, whole))
    const body = '{ "model":"auto", "input": "hi",\n "store":false, "unknown": [1.0] }'
    const got = await fetch(`${running!.origin}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(await got.text()).toBe(whole)
    expect(got.headers.get('x-router-served-model')).toBe('a/large')
    expect(upstream.seen.map(one => String(one.body))).toEqual([
      body.replace('"auto"', '"small"'),
      body.replace('"auto"', '"large"'),
    ])
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/a/v1/responses', '/a/v1/responses'])
    expect(client).toBeDefined()
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({
      mode: 'enforce',
      request: { api: 'responses' },
      attempts: [
        { gate: 'fail', finish: 'completed', tokens: { uncached: 200, cache_read: 1000, output: 50 } },
        { gate: 'pass', cost: 0.0145 },
      ],
      final: { served_rung: 1, escalations: 1, response_id: 'resp_2', status: 200 },
    })
  })

  const compacted = (id: string) => ({
    id,
    object: 'response.compaction',
    created_at: 1,
    output: [
      {
        type: 'message',
        role: 'user',
        id: 'msg_1',
        status: 'completed',
        content: [{ type: 'input_text', text: 'hi' }],
      },
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'c2Vh' },
    ],
    usage: responsesAnswer('').usage,
  })

  it('makes a conversation shorter at the provider that holds it, without a gate and with its cost', async () => {
    const client = await start('ladder = ["b/other", "a/large"]\ngates = ["non-empty"]')
    json(empty('resp_0'))
    json(made('resp_1', 'A cat.'))
    const whole = JSON.stringify(compacted('resp_2'), null, 1)
    upstream.queue(answer(200, whole))
    await client.responses.create({ model: 'auto', input: 'hi' })
    const got = await fetch(`${running!.origin}/v1/responses/compact`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'auto', previous_response_id: 'resp_1' }),
    })
    expect(await got.text()).toBe(whole)
    // What it came to stays with that provider.
    json(made('resp_3', 'Two cats.'))
    const { output } = compacted('resp_2')
    await client.responses.create({ model: 'auto', input: [...output, { role: 'user', content: 'on' }] as never })
    expect(sentModels()).toEqual([
      '/b/v1/responses other',
      '/a/v1/responses large',
      '/a/v1/responses/compact large',
      '/a/v1/responses large',
    ])
    const [, compaction] = await receipts()
    expect(compaction).toMatchObject({
      request: { api: 'responses' },
      attempts: [{ gate: 'skipped', verdict: 'pass', cost: 0.0145 }],
    })
  })

  it('sends a compaction to no rung that cannot make one, and to no provider that the route does not name', async () => {
    const plain = 'provider = [{ id = "c", dialect = "chat", base_url = "http://127.0.0.1:9", auth = "none" }]'
    running = await servedRouter({
      env: { ROUTER_UPSTREAM_CHAT: upstream.origin },
      config: `${plain}
price = [{ model = "c/m", input_per_mtok = 1, output_per_mtok = 1 }]
[[route]]
match = { model = "m" }
mode = "enforce"
ladder = ["c/m"]
gates = ["non-empty"]`,
    })
    upstream.always(answer(200, JSON.stringify(compacted('resp_1'))))
    const ask = (model: string, headers = {}) =>
      fetch(`${running!.origin}/v1/responses/compact`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client', ...headers },
        body: JSON.stringify({ model, input: 'hi' }),
      })
    const refused = await ask('m')
    expect([refused.status, upstream.seen.length]).toEqual([422, 0])
    expect(await refused.text()).toContain('only the Responses API makes a conversation shorter')
    // What no route takes, and what is to be observed, passes as it came.
    expect((await ask('other')).status).toBe(200)
    expect((await ask('m', { 'x-router-mode': 'observe' })).status).toBe(200)
    expect(sentModels()).toEqual(['/v1/responses/compact other', '/v1/responses/compact m'])
    const all = await receipts()
    expect(all.map(({ mode, request }) => `${mode} ${request.api}`)).toEqual([
      'enforce responses',
      'observe passthrough',
      'observe passthrough',
    ])
  })

  it('replays the events of a provider byte for byte, and makes them of an answer that was not streamed', async () => {
    const client = await start(LADDER)
    const frames = responsesFrames(['A ', 'cat.'])
    // An event that the router does not know is of the provider as well.
    frames.splice(2, 0, 'event: codex.rate_limits\ndata: {"type":"codex.rate_limits"}\n\n')
    upstream.queue(stream(frames))
    const asked = { method: 'POST', body: JSON.stringify({ model: 'auto', input: 'hi', stream: true }) }
    expect(await (await fetch(`${running!.origin}/v1/responses`, asked)).text()).toBe(frames.join(''))
    json(made('resp_2', 'A dog.'))
    const built = await client.responses.stream({ model: 'auto', input: 'hi' }).finalResponse()
    expect(built.output_text).toBe('A dog.')
    expect(built.status).toBe('completed')
  })

  it('climbs from a stream that fails in the middle, and from one that is cut', async () => {
    const client = await start('ladder = ["a/small", "b/other"]\ngates = ["non-empty"]')
    upstream.queue(stream(failedFrames), stream(responsesFrames(['From ', 'b.'])))
    expect((await client.responses.stream({ model: 'auto', input: 'hi' }).finalResponse()).output_text).toBe('From b.')
    upstream.queue(stream(responsesFrames(['cut']).slice(0, 7)), stream(responsesFrames(['whole'])))
    expect((await client.responses.stream({ model: 'auto', input: 'hi' }).finalResponse()).output_text).toBe('whole')
    const tooLong = { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' }
    const failed = { ...empty('resp_1'), status: 'failed', error: tooLong }
    upstream.queue(stream([eventOf('response.failed', { response: failed })]), stream(responsesFrames(['fits'])))
    expect((await client.responses.stream({ model: 'auto', input: 'hi' }).finalResponse()).output_text).toBe('fits')
    const all = await receipts()
    expect(all.map(({ attempts }) => attempts.map(({ error_class }) => error_class))).toEqual([
      ['upstream_5xx', undefined],
      ['bad_response', undefined],
      ['context_overflow', undefined],
    ])
  })

  it('reads refusals, limits and calls of tools as the gates of other dialects do', async () => {
    const client = await start(
      'ladder = ["a/small", "a/large"]\ngates = ["non-empty", "args"]',
      'gate = [{ id = "args", kind = "tool-args" }]',
    )
    const item = (content: object) => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content,
    })
    json({ ...made('resp_1', ''), output: [item([{ type: 'refusal', refusal: 'No.' }])] })
    json(made('resp_2', 'Yes.'))
    expect((await client.responses.create({ model: 'auto', input: 'hi' })).output_text).toBe('Yes.')
    const call = (args: string) => ({
      ...made('resp_3', ''),
      output: [
        { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'look', arguments: args, status: 'completed' },
      ],
    })
    json(call('{"q": 1}'))
    json(call('{"q": "cats"}'))
    const parameters = { type: 'object', properties: { q: { type: 'string' } } }
    const tools = [{ type: 'function' as const, name: 'look', parameters, strict: false }]
    const called = await client.responses.create({ model: 'auto', input: 'hi', tools })
    expect(called.output).toMatchObject([{ type: 'function_call', arguments: '{"q": "cats"}' }])
    const limited = {
      ...made('resp_4', '{"a":'),
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    }
    json(limited)
    expect((await client.responses.create({ model: 'auto', input: 'hi' })).status).toBe('incomplete')
    const all = await receipts()
    expect(all.map(({ attempts }) => attempts.map(({ gate, finish }) => `${gate} ${finish}`))).toEqual([
      ['fail completed', 'pass completed'],
      ['fail completed', 'pass completed'],
      ['pass max_output_tokens'],
    ])
  })

  it.each([
    { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] }, environment: null },
    { type: 'local_shell_call', call_id: 'c', action: { type: 'exec', command: ['ls'] } },
    { type: 'apply_patch_call', call_id: 'c', operation: { type: 'delete_file', path: 'a' } },
    { type: 'computer_call', call_id: 'c', actions: [{ type: 'screenshot' }], pending_safety_checks: [] },
    { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: { q: 'a' } },
    { type: 'mcp_approval_request', name: 'save', server_label: 'docs', arguments: '{}' },
    { type: 'compaction', encrypted_content: 'c2Vh' },
  ])('serves what the client is to go on with, without a climb ($type)', async item => {
    const client = await start(
      LADDER.replace('"non-empty"', '"non-empty", "args"'),
      'gate = [{ id = "args", kind = "tool-args" }]',
    )
    json({ ...empty('resp_1'), output: [{ id: 'i_1', status: 'completed', ...item }] })
    const types = ['shell', 'local_shell', 'apply_patch', 'computer_use_preview', 'tool_search', 'mcp']
    const tools = types.map(type => ({ type })) as OpenAI.Responses.Tool[]
    const { output } = await client.responses.create({ model: 'auto', input: 'hi', tools })
    expect(output).toMatchObject([item])
    expect(sentModels()).toEqual(['/a/v1/responses small'])
  })

  it('climbs from a command that ran at the provider and came to nothing', async () => {
    const client = await start(LADDER)
    const environment = { type: 'container_reference', container_id: 'cntr_1' }
    const ran = { type: 'shell_call', id: 'i_1', call_id: 'c', action: { commands: ['ls'] }, environment }
    json({ ...empty('resp_1'), output: [ran] })
    json(made('resp_2', 'A cat.'))
    expect((await client.responses.create({ model: 'auto', input: 'hi' })).output_text).toBe('A cat.')
  })

  it('serves a parsed answer of the SDK', async () => {
    const client = await start(LADDER)
    json(made('resp_1', '{"animal":"cat"}'))
    const format = zodTextFormat(z.object({ animal: z.string() }), 'seen')
    const parsed = await client.responses.parse({ model: 'auto', input: 'hi', text: { format } })
    expect(parsed.output_parsed).toEqual({ animal: 'cat' })
  })

  it('hands on a refusal of the provider as it came, and says its own errors as clients of the dialect read them', async () => {
    const client = await start('ladder = ["a/small"]\ngates = ["non-empty"]\non_exhausted = "error"')
    json({ error: { type: 'invalid_request_error', code: 'bad_thing', param: 'input', message: 'no' } }, 400)
    await expect(client.responses.create({ model: 'small', input: 'hi' })).rejects.toMatchObject({
      status: 400,
      code: 'bad_thing',
      param: 'input',
    })
    json(empty('resp_1'))
    await expect(client.responses.create({ model: 'auto', input: 'hi' })).rejects.toMatchObject({
      status: 400,
      code: 'gate_failed',
    })
    const bad = await fetch(`${running!.origin}/v1/responses`, { method: 'POST', body: '{"model":' })
    expect(await bad.json()).toMatchObject({ error: { code: 'router_bad_request' } })
  })

  it('makes no call that the budget does not cover', async () => {
    const client = await start(LADDER, 'budget = { per_day_usd = 0.000001 }')
    await expect(client.responses.create({ model: 'auto', input: 'hi' })).rejects.toMatchObject({ status: 402 })
    expect(upstream.seen).toEqual([])
  })

  it('lets go of events early where the gates allow it, and ends them with an error event', async () => {
    const client = await start(
      'ladder = ["a/small", "a/large"]\ngates = ["short"]\nearly_release = true',
      'gate = [{ id = "short", kind = "length", max_chars = 8 }]',
    )
    upstream.queue(stream(responsesFrames(['A cat', ' of some length.'])))
    const types: string[] = []
    const read = async () => {
      for await (const event of await client.responses.create({ model: 'auto', input: 'hi', stream: true }))
        types.push(event.type)
    }
    await expect(read()).rejects.toThrow('gate')
    expect(types).toContain('response.output_text.delta')
    expect(types).not.toContain('response.completed')
  })

  it('passes what is made in the background through, and says so', async () => {
    const client = await start(LADDER)
    json({ ...made('resp_1', ''), status: 'queued', output: [], usage: null })
    expect((await client.responses.create({ model: 'small', input: 'hi', background: true })).status).toBe('queued')
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({ mode: 'observe', route_ix: 0, request: { features: { background: true } } })
  })
})

describe('a conversation that a provider holds', () => {
  const TWO = 'ladder = ["a/small", "a/large", "b/other"]\ngates = ["non-empty"]'

  it('goes on at the model that made its last response, and fails over to no other provider', async () => {
    const client = await start(TWO)
    json(empty('resp_1'))
    json(made('resp_2', 'From large.'))
    await client.responses.create({ model: 'auto', input: 'hi' })
    json({ error: { message: 'down', type: 'server_error' } }, 500)
    const next = client.responses.create({ model: 'auto', input: 'on', previous_response_id: 'resp_2' })
    await expect(next).rejects.toMatchObject({ status: 500 })
    expect(sentModels()).toEqual(['/a/v1/responses small', '/a/v1/responses large', '/a/v1/responses large'])
    const [first, second] = await receipts()
    expect(second).toMatchObject({
      session_id: first!.session_id,
      policy: {
        start_rung: 1,
        overrides: ['conversation'],
        dropped: [{ rung: 2, reason: 'conversation', because: 'the conversation is held by provider a' }],
      },
    })
  })

  it('starts where the route does if its id is not known, and reserves for what it may hold', async () => {
    const client = await start(TWO, 'budget = { per_request_usd = 0.1 }')
    json(made('resp_2', 'ok'))
    await client.responses.create({ model: 'auto', input: 'hi', max_output_tokens: 10 })
    const unknown = { model: 'auto', input: 'hi', max_output_tokens: 10, previous_response_id: 'resp_none' }
    await expect(client.responses.create(unknown)).rejects.toMatchObject({ status: 402 })
    json(made('resp_3', 'ok'))
    await client.responses.create({ ...unknown, previous_response_id: 'resp_2' })
    expect(sentModels()).toEqual(['/a/v1/responses small', '/a/v1/responses small'])
  })

  it('reserves for what a prompt may hold that its provider keeps', async () => {
    const client = await start(TWO, 'budget = { per_request_usd = 0.1 }')
    const stored = { model: 'auto', max_output_tokens: 10, prompt: { id: 'pmpt_1' } }
    await expect(client.responses.create(stored)).rejects.toMatchObject({ status: 402 })
    expect(upstream.seen).toEqual([])
  })

  it('asks one model only where each call adds to a conversation', async () => {
    const client = await start(TWO)
    json(empty('resp_1'))
    const asked = { model: 'auto', input: 'hi', conversation: { id: 'conv_1' } }
    expect((await client.responses.create(asked)).id).toBe('resp_1')
    expect(sentModels()).toEqual(['/a/v1/responses small'])
    const [receipt] = await receipts()
    expect(receipt!.final).toMatchObject({ served_from: 'best_attempt', served_rung: 0 })
  })

  it('keeps items and sealed reasoning with the provider that made them', async () => {
    const client = await start('ladder = ["b/other", "a/small"]\ngates = ["non-empty"]')
    const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'c2VhbGVk' }
    const output = [reasoning, ...responsesAnswer('From a.').output.slice(1)]
    json({ error: { message: 'down', type: 'server_error' } }, 500)
    json({ ...made('resp_1', ''), output })
    await client.responses.create({ model: 'auto', input: 'hi', store: false })
    json(made('resp_2', 'Again from a.'))
    const sealed = { type: 'reasoning' as const, id: 'rs_1', summary: [], encrypted_content: 'c2VhbGVk' }
    await client.responses.create({ model: 'auto', input: [sealed, { role: 'user', content: 'on' }], store: false })
    json(made('resp_3', 'And again.'))
    const named = { type: 'item_reference' as const, id: 'rs_1' }
    await client.responses.create({ model: 'auto', input: [named, { role: 'user', content: 'on' }] })
    expect(sentModels()).toEqual([
      '/b/v1/responses other',
      '/a/v1/responses small',
      '/a/v1/responses small',
      '/a/v1/responses small',
    ])
  })
})

describe('a request of the Responses API on rungs that do not speak it', () => {
  /** A host of chat alone, one of messages, and one that takes the Responses API. */
  async function mixed(ladder: string): Promise<OpenAI> {
    const provider = (id: string, more: string) =>
      `{ id = "${id}", ${more}, base_url = "${upstream.origin}/${id}", auth = "none" }`
    const price = (model: string) => `{ model = "${model}", input_per_mtok = 1, output_per_mtok = 5 }`
    running = await servedRouter({
      config: `
price = [${['talk/m', 'mess/claude-haiku-4-5', 'full/m'].map(price).join(', ')}]
provider = [
  ${provider('talk', 'dialect = "chat"')},
  ${provider('mess', 'dialect = "messages"')},
  ${provider('full', 'dialect = "chat", responses = true')},
]
[[route]]
match = {}
mode = "enforce"
ladder = ${ladder}
stay_for_cache = false
gates = ["non-empty"]
`,
    })
    return new OpenAI({ apiKey: 'sk-test', baseURL: `${running.origin}/v1`, maxRetries: 0 })
  }
  const look = { type: 'function' as const, name: 'look', parameters: { type: 'object' }, strict: false }

  it('runs a loop of tools over a chat host and a messages host, streamed', async () => {
    const client = await mixed('["talk/m", "mess/claude-haiku-4-5"]')
    // The first turn: the chat host says nothing, the messages host calls a tool.
    upstream.queue(stream(chatFrames([], { model: 'm' })))
    const use = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { q: 'cat' } }
    json({
      ...messagesAnswer('Let me see.'),
      content: [{ type: 'text', text: 'Let me see.' }, use],
      stop_reason: 'tool_use',
    })
    const asked = { model: 'auto', store: false, tools: [look], include: ['reasoning.encrypted_content' as const] }
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'hi' }]
    const first = await client.responses.stream({ ...asked, input }).finalResponse()
    expect(first.output).toMatchObject([
      { type: 'message', content: [{ type: 'output_text', text: 'Let me see.' }] },
      { type: 'function_call', call_id: 'toolu_1', name: 'look', arguments: '{"q":"cat"}' },
    ])
    // The second turn goes to the chat host, with the history in its words.
    json(chatAnswer('It is a cat.'))
    const output = { type: 'function_call_output' as const, call_id: 'toolu_1', output: 'A cat.' }
    const history = [...input, ...(first.output as OpenAI.Responses.ResponseInput), output]
    const second = await client.responses.create({ ...asked, input: history })
    expect(second.output_text).toBe('It is a cat.')
    expect(second.usage).toMatchObject({ input_tokens: 1200, input_tokens_details: { cached_tokens: 1000 } })
    expect(upstream.seen.map(({ url }) => url)).toEqual([
      '/talk/v1/chat/completions',
      '/mess/v1/messages',
      '/talk/v1/chat/completions',
    ])
    expect(JSON.parse(String(upstream.seen[2]!.body)).messages).toMatchObject([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'toolu_1' }] },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'A cat.' },
    ])
  })

  it('leaves such rungs out where the answer is to be kept, and says why', async () => {
    const client = await mixed('["talk/m", "full/m"]')
    json(made('resp_1', 'Kept.'))
    expect((await client.responses.create({ model: 'auto', input: 'hi' })).output_text).toBe('Kept.')
    expect(sentModels()).toEqual(['/full/v1/responses m'])
    const [receipt] = await receipts()
    expect(receipt!.policy.dropped).toEqual([
      { rung: 0, model: 'talk/m', reason: 'untranslatable', because: expect.stringContaining('store: ') },
    ])
  })

  it('hands on errors of such hosts in the words of the dialect', async () => {
    const client = await mixed('["mess/claude-haiku-4-5"]')
    json({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }, 529)
    const asked = client.responses.create({ model: 'auto', input: 'hi', store: false })
    await expect(asked).rejects.toMatchObject({ status: 503, type: 'server_error' })
    const bad = { model: 'auto', input: 'hi', store: true }
    await expect(client.responses.create(bad)).rejects.toMatchObject({ status: 422, code: 'untranslatable' })
  })
})
