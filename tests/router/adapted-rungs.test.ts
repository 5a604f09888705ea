import { describe, expect, it } from 'vitest'
import { parseKeys } from '../../router/auth/keys.ts'
import type { RouterOptions } from '../../router/router.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import type { Explanation } from '../../shared/wire/router/explain.ts'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, type Seen } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const start = async ({
  route = '',
  top = '',
  gates = '"non-empty"',
  ladder = '"small/claude-haiku-4-5", "large/claude-opus-4-8"',
  ...options
}: Pick<RouterOptions, 'access'> & Partial<Record<'route' | 'top' | 'gates' | 'ladder', string>> = {}) => {
  running = await testRouter({
    ...options,
    config: `
price = [
  { model = "small/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/claude-opus-4-8", input_per_mtok = 15, output_per_mtok = 75 },
  { model = "talk/plain", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "talk/magistral-small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "talk/deepseek-v4-pro", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "talk/gpt-4o", input_per_mtok = 2, output_per_mtok = 10 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
  { id = "talk", dialect = "chat", base_url = "${upstream.origin}/talk/v1", auth = "none" },
]
${top}
[[route]]
match = {}
mode = "enforce"
ladder = [${ladder}]
gates = [${gates}]
${route}
`,
  })
  return running
}

/** What Claude Code sends: written for the newest model of the maker. */
const ASK = `{"model":"claude-opus-4-8","max_tokens":32000, "thinking":{"type":"adaptive"},
"messages":[{"role":"user","content":"a secret question"}],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high"},"stream":false}`
const error = (message: string, status = 400) =>
  answer(status, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }))
const good = (text = 'good') => answer(200, JSON.stringify(messagesAnswer(text)))
const bodies = () => upstream.seen.map(({ body }) => String(body))

/** As the maker documents it for this generation. */
const asDocumented = (_: unknown, { body }: Seen) => {
  const { thinking, output_config } = JSON.parse(String(body)) as {
    thinking?: { type: string }
    output_config?: object
  }
  if (thinking?.type === 'adaptive') return error('adaptive thinking is not supported on this model')
  if (output_config !== undefined) return error('This model does not support the effort parameter.')
  return good()
}

describe('a request that was written for another model', () => {
  it('is answered by the cheap rung, in one call, and the receipt says what was changed', async () => {
    upstream.always((response, seen, request) => asDocumented(response, seen)(response, seen, request))
    const { post, router, receipts } = await start()
    const got = await post('/v1/messages', ASK)
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    const due = ASK.replace('"claude-opus-4-8"', '"claude-haiku-4-5"')
      .replace('{"type":"adaptive"}', '{"type":"enabled","budget_tokens":16000}')
      .replace('"output_config":{"effort":"high"},', '')
    expect(bodies()).toEqual([due])

    const id = got.headers.get('x-router-trace-id')
    const read = await router.fetch(new Request(`http://router/-/traces/${id}/explain`))
    const explained = (await read.json()) as Explanation
    const because = explained.steps.find(({ step }) => step === 'attempt 1')?.because
    expect(because).toContain('thinking (adaptive) became enabled 16000: the model does not take it')
    expect(because).toContain('output_config.effort (high) was left out')

    const all = await receipts()
    expect(all[0]?.attempts).toMatchObject([
      {
        cause: 'start',
        adapted: [
          { path: 'thinking', from: 'adaptive', to: 'enabled 16000', why: 'unsupported' },
          { path: 'output_config.effort', from: 'high', to: null, why: 'unsupported' },
        ],
      },
    ])
    expect(JSON.stringify(all)).not.toContain('secret')
    const chain = recordChainChecker()
    for (const record of all) expect(chain.push(record)).toBeUndefined()
  })

  it('goes as it came, but for the model, to the model that it names, and nothing is said of it', async () => {
    upstream.queue(error('overloaded', 529), good())
    const { post, receipts } = await start()
    await post('/v1/messages', ASK)
    expect(bodies()[1]).toBe(ASK)
    expect((await receipts())[0]?.attempts.map(({ adapted }) => adapted?.length)).toEqual([2, undefined])
  })

  it('goes as it came, but for the model, where the route says so', async () => {
    upstream.queue(error('adaptive thinking is not supported on this model'), good())
    const { post, receipts } = await start({ route: 'adapt = false' })
    const got = await post('/v1/messages', ASK)
    expect(got.headers.get('x-router-served-rung')).toBe('1')
    expect(bodies()).toEqual([ASK.replace('opus-4-8', 'haiku-4-5'), ASK])
    expect((await receipts())[0]?.attempts.map(({ adapted }) => adapted)).toEqual([undefined, undefined])
  })

  it('is not touched in observe', async () => {
    upstream.always(good())
    running = await testRouter({ env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
    await running.post('/v1/messages', ASK.replace('opus-4-8', 'haiku-4-5'))
    expect(bodies()).toEqual([ASK.replace('opus-4-8', 'haiku-4-5')])
  })

  it('takes the facts of the config over those of the table', async () => {
    upstream.always(good())
    const accepts = '{ thinking = ["adaptive"], efforts = ["low"], context_management = false }'
    const top = `model = [{ id = "small/claude-haiku-4-5", max_output_tokens = 1000, accepts = ${accepts} }]`
    const { post } = await start({ top })
    await post('/v1/messages', ASK)
    expect(JSON.parse(bodies()[0]!)).toEqual({
      model: 'claude-haiku-4-5',
      max_tokens: 1000,
      thinking: { type: 'adaptive' },
      messages: [{ role: 'user', content: 'a secret question' }],
      output_config: { effort: 'low' },
      stream: false,
    })
  })

  it('is reserved for by the limit that is sent', async () => {
    upstream.always(good())
    // 32,000 tokens of output come to 0.16 USD, 1,000 to 0.005.
    const top = 'model = [{ id = "small/claude-haiku-4-5", max_output_tokens = 1000 }]'
    const { post } = await start({ top, route: 'budget = { per_request_usd = 0.01 }' })
    const got = await post('/v1/messages', { ...(JSON.parse(ASK) as object), model: 'auto' })
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
  })
})

describe('a request for a rung of another dialect', () => {
  it('is translated without the wishes that have no word there, and each stands on the receipt', async () => {
    upstream.always(talks())
    const { post, receipts } = await start({ ladder: '"talk/gpt-4o", "large/claude-opus-4-8"' })
    const got = await post('/v1/messages', ASK)
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    expect(JSON.parse(bodies()[0]!)).toEqual({
      model: 'gpt-4o',
      messages: [{ role: 'user', content: 'a secret question' }],
      max_completion_tokens: 16_384,
      stream: false,
    })
    const [receipt] = await receipts()
    expect(receipt?.policy.dropped).toBeUndefined()
    expect(receipt?.attempts[0]?.adapted).toEqual([
      { path: 'context_management', to: null, why: 'no_counterpart' },
      { path: 'max_completion_tokens', from: '32000', to: '16384', why: 'too_large' },
      { path: 'reasoning_effort', from: 'high', to: null, why: 'unsupported' },
    ])
  })

  it('skips it for any of them where the route says so', async () => {
    upstream.always(good())
    const { post, receipts } = await start({
      ladder: '"talk/gpt-4o", "large/claude-opus-4-8"',
      route: 'translate = "strict"',
    })
    const got = await post('/v1/messages', ASK)
    expect(got.headers.get('x-router-served-rung')).toBe('1')
    expect((await receipts())[0]?.policy.dropped).toMatchObject([{ rung: 0, reason: 'untranslatable' }])
  })
})

const CHAT = {
  model: 'auto',
  messages: [{ role: 'user', content: 'hi' }],
  reasoning_effort: 'low',
  safety_identifier: 'u1',
  stream: false,
}
const talks = (text = 'good') => answer(200, JSON.stringify(chatAnswer(text)))
const unsupported = (name: string) =>
  answer(
    400,
    JSON.stringify({ error: { message: `property '${name}' is unsupported`, type: 'invalid_request_error' } }),
  )

describe('a setting that a provider refuses', () => {
  it('is left out once, noted, and not sent to that model again', async () => {
    upstream.queue(unsupported('safety_identifier'), talks(), talks())
    const { post, receipts } = await start({ ladder: '"talk/plain"' })
    for (let n = 0; n < 2; n++) expect((await post('/v1/chat/completions', CHAT)).status).toBe(200)
    const { safety_identifier: _, ...without } = CHAT
    const sent = [CHAT, without, without].map(one => JSON.stringify({ ...one, model: 'plain' }))
    expect(bodies()).toEqual(sent)
    const adapted = [{ path: 'safety_identifier', to: null, why: 'refused' }]
    expect((await receipts()).map(({ attempts, final }) => [attempts, final.served_from])).toMatchObject([
      [
        [
          { error_class: 'upstream_4xx', cost: 0 },
          { cause: 'retry', verdict: 'pass', adapted },
        ],
        'attempt',
      ],
      [[{ cause: 'start', verdict: 'pass', adapted }], 'attempt'],
    ])
  })

  it('is not left out of the calls of another tenant, who may bring a value that the model takes', async () => {
    const [acme, other] = ['acme-key-0123456789abcdef', 'other-key-0123456789abcdef']
    const keys = parseKeys(`acme:${acme},other:${other}`, sha256)
    const access = { keys, reach: 'network', insecure: false, metricsOpen: true } as const
    upstream.queue(unsupported('reasoning_effort'))
    upstream.always(talks())
    const { post } = await start({ ladder: '"talk/plain"', access })
    for (const key of [acme, acme, other])
      expect((await post('/v1/chat/completions', CHAT, { 'x-router-key': key })).status).toBe(200)
    expect(bodies().map(body => body.includes('reasoning_effort'))).toEqual([true, false, false, true])
  })

  it('is not sent by gates that ask the model again', async () => {
    upstream.queue(unsupported('safety_identifier'))
    upstream.always(talks('forty-two'))
    const top = 'gate = [{ id = "agrees", kind = "consistency", k = 2 }]'
    const { post, receipts } = await start({ ladder: '"talk/plain"', top, gates: '"agrees"' })
    expect((await post('/v1/chat/completions', CHAT)).status).toBe(200)
    expect(bodies().map(body => body.includes('safety_identifier'))).toEqual([true, false, false])
    expect((await receipts())[0]?.attempts[1]?.gates).toMatchObject([{ gate_id: 'agrees', verdict: 'pass' }])
  })

  it('may be one of up to three in a request, each left out with a call more and all of them from then on', async () => {
    const ask = { ...CHAT, user: 'u', seed: 7 }
    upstream.queue(
      unsupported('safety_identifier'),
      unsupported('reasoning_effort'),
      unsupported('user'),
      talks(),
      talks(),
    )
    const { post, receipts } = await start({ ladder: '"talk/plain", "talk/gpt-4o"' })
    for (let n = 0; n < 2; n++) {
      const got = await post('/v1/chat/completions', ask)
      expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    }
    expect(Object.keys(JSON.parse(bodies()[4]!) as object)).toEqual(Object.keys(JSON.parse(bodies()[3]!) as object))
    const [first, second] = await receipts()
    expect(first?.attempts.map(({ rung, cause }) => [rung, cause])).toEqual([
      [0, 'start'],
      [0, 'retry'],
      [0, 'retry'],
      [0, 'retry'],
    ])
    expect(second?.attempts.map(({ cause }) => cause)).toEqual(['start'])
    expect(second?.attempts[0]?.adapted?.map(({ path }) => path)).toEqual([
      'safety_identifier',
      'reasoning_effort',
      'user',
    ])
  })

  it('is the fourth of a request, or beyond its attempts: that climbs', async () => {
    const ask = { ...CHAT, user: 'u', seed: 7 }
    upstream.queue(...['safety_identifier', 'reasoning_effort', 'user', 'seed'].map(unsupported), talks())
    const { post, receipts } = await start({ ladder: '"talk/plain", "talk/gpt-4o"' })
    const got = await post('/v1/chat/completions', ask)
    expect([got.status, got.headers.get('x-router-served-rung'), upstream.seen.length]).toEqual([200, '1', 5])
    expect((await receipts())[0]?.attempts.at(-1)).toMatchObject({ rung: 1, cause: 'failover' })
  })

  it('is left out with the value that was refused, and other values are sent, until three of them were refused', async () => {
    const notThat = (value: string) =>
      answer(
        400,
        JSON.stringify({
          error: {
            message: `Unsupported value: '${value}' is not supported with this model.`,
            param: 'reasoning_effort',
            code: 'unsupported_value',
          },
        }),
      )
    const { post } = await start({ ladder: '"talk/plain"' })
    const sent = async (effort: string, refuses: boolean) => {
      upstream.seen.length = 0
      if (refuses) upstream.queue(notThat(effort))
      upstream.queue(talks())
      expect((await post('/v1/chat/completions', { ...CHAT, reasoning_effort: effort })).status).toBe(200)
      return bodies().map(body => (JSON.parse(body) as { reasoning_effort?: string }).reasoning_effort)
    }
    expect(await sent('max', true)).toEqual(['max', undefined])
    expect(await sent('max', false)).toEqual([undefined])
    expect(await sent('high', false)).toEqual(['high'])
    expect(await sent('xhigh', true)).toEqual(['xhigh', undefined])
    expect(await sent('low', false)).toEqual(['low'])
    expect(await sent('minimal', true)).toEqual(['minimal', undefined])
    expect(await sent('low', false)).toEqual([undefined])
  })

  it('is forgotten where the model refuses all the same', async () => {
    upstream.queue(unsupported('safety_identifier'), unsupported('messages'))
    upstream.always(talks())
    const { post } = await start({ ladder: '"talk/plain"' })
    await post('/v1/chat/completions', CHAT)
    await post('/v1/chat/completions', CHAT)
    expect(JSON.parse(bodies()[2]!)).toHaveProperty('safety_identifier')
  })

  it.each([
    ['what the request is about', unsupported('messages'), CHAT],
    ['what the request does not have', unsupported('seed'), CHAT],
    ['a value that is no wish', unsupported('store'), { ...CHAT, store: true }],
  ])('is not %s: that climbs', async (_, refusal, ask) => {
    upstream.queue(refusal, talks())
    const { post } = await start({ ladder: '"talk/plain", "talk/gpt-4o"' })
    const got = await post('/v1/chat/completions', ask)
    expect([got.headers.get('x-router-served-rung'), upstream.seen.length]).toEqual(['1', 2])
  })

  it('may be a beta: those that only change how an answer is made are left out, and no other', async () => {
    upstream.queue(
      error('Unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header.'),
      good(),
      good(),
    )
    const { post, receipts } = await start()
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07, mcp-client-2025-11-20', 'x-other': '1' }
    for (let n = 0; n < 2; n++) {
      const got = await post('/v1/messages', ASK, headers)
      expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    }
    const betas = upstream.seen.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf('anthropic-beta') + 1])
    expect(betas).toEqual([
      'context-1m-2025-08-07, mcp-client-2025-11-20',
      'mcp-client-2025-11-20',
      'mcp-client-2025-11-20',
    ])
    expect((await receipts())[1]?.attempts[0]?.adapted?.at(-1)).toEqual({
      path: 'anthropic-beta',
      to: null,
      why: 'refused',
    })
  })

  it('is no beta that a tool needs', async () => {
    upstream.queue(error('Unexpected value(s) `mcp-client-2025-11-20` for the `anthropic-beta` header.'), good())
    const { post } = await start()
    const got = await post('/v1/messages', ASK, { 'anthropic-beta': 'mcp-client-2025-11-20' })
    expect([got.headers.get('x-router-served-rung'), upstream.seen.length]).toEqual(['1', 2])
  })

  it('is the word of the model that the client named, and goes to the client', async () => {
    upstream.queue(unsupported('safety_identifier'))
    const { post } = await start({ ladder: '"talk/plain", "talk/gpt-4o"' })
    expect((await post('/v1/chat/completions', { ...CHAT, model: 'plain' })).status).toBe(400)
    expect(upstream.seen).toHaveLength(1)
  })
})

/** In the words of Mistral's API, whose reasoning models answer with a list. */
const asMistral = (_: unknown, { body }: Seen) => {
  const { model, messages, stream_options } = JSON.parse(String(body)) as {
    model: string
    messages: { tool_call_id?: string }[]
    stream_options?: object
  }
  if (model === 'gpt-4o') return answer(200, JSON.stringify(chatAnswer('from the dear one')))
  if (stream_options !== undefined) {
    const detail = [{ type: 'extra_forbidden', loc: ['body', 'stream_options', 'include_usage'] }]
    return answer(422, JSON.stringify({ object: 'error', message: { detail }, type: 'invalid_request_error' }))
  }
  const wrong = messages.find(({ tool_call_id: id }) => id !== undefined && !/^[A-Za-z0-9]{9}$/.test(id))
  const message = `Tool call id was ${wrong?.tool_call_id} but must be a-z, A-Z, 0-9, with a length of 9.`
  if (wrong)
    return answer(400, JSON.stringify({ object: 'error', message, type: 'invalid_request_error', code: '3280' }))
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }
  const content = [thinking, { type: 'text', text: 'fine' }]
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  return answer(200, JSON.stringify({ id: 'x', object: 'chat.completion', model, choices }))
}

it.each(['magistral-small', 'gpt-4o'])(
  'a model of Mistral serves a conversation whose calls another one has made, asked for %s',
  async model => {
    upstream.always((response, seen, request) => asMistral(response, seen)(response, seen, request))
    const { post } = await start({ ladder: '"talk/magistral-small", "talk/gpt-4o"' })
    const call = { id: 'call_AbCdEfGhIjKl', type: 'function', function: { name: 'f', arguments: '{}' } }
    const messages = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: 'ok' },
    ]
    const got = await post('/v1/chat/completions', JSON.stringify({ model, messages }))
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    expect(await got.json()).toMatchObject({
      choices: [{ message: { content: [{ type: 'thinking' }, { text: 'fine' }] } }],
    })
  },
)

/** What strict hosts say of members that models of other hosts wrote into their turns, and what DeepSeek says where its own are not there. */
const REFUSALS: Readonly<Record<string, (at: number, name: string) => object>> = {
  Fireworks: (at, name) => ({ error: { message: `Extra inputs are not permitted, field: 'messages[${at}].${name}'` } }),
  Cerebras: (at, name) => ({
    message: `messages.${at}.assistant.${name}: property 'messages.${at}.assistant.${name}' is unsupported`,
    type: 'invalid_request_error',
    code: 'wrong_api_format',
  }),
  Mistral: (at, name) => ({ detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', at, 'assistant', name] }] }),
  Groq: (at, name) => ({
    error: {
      message: `'messages.${at}' : for 'role:assistant' the following must be satisfied[('messages.${at}' : property '${name}' is unsupported)]`,
    },
  }),
}
interface Turn {
  role: string
  tool_calls?: { extra_content?: object }[]
  reasoning_content?: string
}
const THOUGHT_CALL = {
  role: 'assistant',
  content: null,
  reasoning_content: 'hm',
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: {} } }],
}
const afterCall = (call: object) => [
  { role: 'user', content: 'go' },
  call,
  { role: 'tool', tool_call_id: 'a', content: 'ok' },
]

it.each(Object.keys(REFUSALS))('a conversation that another model began goes on at %s', async host => {
  upstream.always((response, seen, request) => {
    const { messages } = JSON.parse(String(seen.body)) as { messages: Turn[] }
    const at = messages.findIndex(({ reasoning_content: thoughts }) => thoughts !== undefined)
    const called = messages.findIndex(({ tool_calls: calls }) => calls?.some(one => one.extra_content !== undefined))
    const refused =
      at >= 0
        ? REFUSALS[host]!(at, 'reasoning_content')
        : called >= 0 && REFUSALS[host]!(called, host === 'Fireworks' ? 'tool_calls[0].extra_content' : 'extra_content')
    const say = refused
      ? answer(host === 'Mistral' ? 422 : 400, JSON.stringify(refused))
      : answer(200, JSON.stringify(chatAnswer('fine')))
    say(response, seen, request)
  })
  const { post } = await start({ ladder: '"talk/plain", "talk/gpt-4o"' })
  for (const calls of [3, 4]) {
    const got = await post('/v1/chat/completions', { model: 'auto', messages: afterCall(THOUGHT_CALL) })
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    expect(upstream.seen).toHaveLength(calls)
  }
})

it.each([
  ['/v1/chat/completions', 'auto', afterCall({ ...THOUGHT_CALL, reasoning_content: undefined })],
  ['/v1/chat/completions', 'deepseek-v4-pro', afterCall({ ...THOUGHT_CALL, reasoning_content: '' })],
  [
    '/v1/messages',
    'deepseek-v4-pro',
    [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] },
    ],
  ],
])(
  'a model of DeepSeek goes on with calls that came without its thoughts: %s, asked for %s',
  async (path, model, messages) => {
    upstream.always((response, seen, request) => {
      const { messages: turns } = JSON.parse(String(seen.body)) as { messages: Turn[] }
      const lacks = turns.some(({ role, reasoning_content: thoughts }) => role === 'assistant' && !thoughts)
      const message = 'The `reasoning_content` in the thinking mode must be passed back to the API.'
      const error = { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' }
      const say = lacks ? answer(400, JSON.stringify({ error })) : answer(200, JSON.stringify(chatAnswer('fine')))
      say(response, seen, request)
    })
    const { post } = await start({ ladder: '"talk/deepseek-v4-pro"' })
    expect((await post(path, { model, max_tokens: 100, messages })).status).toBe(200)
    expect(upstream.seen).toHaveLength(1)
  },
)

it.each([
  ['/v1/chat/completions', { stream_options: { include_usage: true } }],
  ['/v1/messages', { max_tokens: 100 }],
])('a host that refuses to be asked for a count of tokens is asked without it: %s', async (path, more) => {
  upstream.always((response, seen, request) => asMistral(response, seen)(response, seen, request))
  const { post } = await start({ ladder: '"talk/magistral-small", "talk/gpt-4o"' })
  const ask = { model: 'other', stream: true, messages: [{ role: 'user', content: 'go' }], ...more }
  for (const calls of [2, 3]) {
    const got = await post(path, JSON.stringify(ask))
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
    expect(await got.text()).toContain('fine')
    expect(upstream.seen).toHaveLength(calls)
  }
})
