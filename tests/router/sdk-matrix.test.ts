import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import { completionFrames, completionOf, messageFrames, messageOf } from '../upstream/frames.ts'
import { type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { json, play, sse, type Wire } from '../upstream/wire.ts'
import { callSdk, type Seen } from './sdk-clients.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

type Json = Record<string, unknown>

interface Scenario {
  dialect: DialectName
  name: string
  /** Members of the request beside model and prompt. */
  request?: Json
  /** The answer as the upstream would give it without a stream. */
  answer: Json
  status?: number
  headers?: Record<string, string>
}

const TOOLS = {
  messages: [
    { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: { q: { type: 'string' } } } },
  ],
  chat: [
    {
      type: 'function',
      function: {
        name: 'look',
        description: 'Looks.',
        parameters: { type: 'object', properties: { q: { type: 'string' } } },
      },
    },
  ],
}
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const use = (id: string, input: Json) => ({ type: 'tool_use', id: `toolu_${id}`, name: 'look', input })
const call = (id: string, args: string) => ({
  id: `call_${id}`,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const odds = (token: string) => ({ token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] })
const text = (value: string) => ({ type: 'text', text: value })

const M = (name: string, content: readonly Json[], request: Json = {}, rest: Json = {}): Scenario => ({
  dialect: 'messages',
  name,
  request,
  answer: messageOf(content, rest),
})
const C = (name: string, messages: readonly Json[], request: Json = {}, finish?: string): Scenario => ({
  dialect: 'chat',
  name,
  request,
  answer: completionOf(messages, finish),
})

const ANSWERS: readonly Scenario[] = [
  M('text', [text('Grüße, 世界 😀.')]),
  M('tools', [text('Let me see.'), use('a', { q: '世界', n: 1.5, deep: { list: [1, null] } })], {
    tools: TOOLS.messages,
  }),
  M('parallel tools', [use('a', { q: 'one' }), use('b', {}), use('c', { q: 'three' })], {
    tools: TOOLS.messages,
    tool_choice: { type: 'any' },
  }),
  M('images', [text('One pixel.')], {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
          text('What is it?'),
        ],
      },
    ],
  }),
  M(
    'thinking',
    [
      { type: 'thinking', thinking: 'Hm… 漢字', signature: 'c2lnbmF0dXJl' },
      { type: 'redacted_thinking', data: 'b3BhcXVl' },
      text('Done.'),
    ],
    { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2048 },
  ),
  M('thinking in the history', [text('Going on.')], {
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm', signature: 'c2ln' }, text('Hello.')] },
      { role: 'user', content: 'go on' },
    ],
  }),
  M('a refusal', [text('I wi')], {}, { stop_reason: 'refusal', stop_details: { type: 'refusal', category: null } }),
  M('the token limit', [text('cut')], {}, { stop_reason: 'max_tokens' }),
  M('a block nobody knows', [text('see'), { type: 'hologram', cubes: [1, 2] }]),
  C('text', [{ content: 'Grüße, 世界 😀.' }]),
  C('text with a usage chunk', [{ content: 'counted' }], { stream_options: { include_usage: true } }),
  C('tools', [{ content: 'Let me see.', tool_calls: [call('a', '{"q": "世界", "n": 1.50}')] }], { tools: TOOLS.chat }),
  C('parallel tools', [{ tool_calls: [call('a', '{"q":"one"}'), call('b', '{}'), call('c', '{"q":"three"}')] }], {
    tools: TOOLS.chat,
    tool_choice: 'required',
  }),
  C('images', [{ content: 'One pixel.' }], {
    messages: [
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }, text('What is it?')],
      },
    ],
  }),
  C('reasoning', [{ content: 'Done.', reasoning_content: 'Hm…' }], { reasoning_effort: 'low' }),
  C('n = 2', [{ content: 'first' }, { content: 'second, and longer' }], { n: 2 }),
  C('logprobs', [{ content: 'yes', logprobs: { content: [odds('yes')], refusal: null } }], { logprobs: true }),
  C('a refusal', [{ refusal: 'I will not do that.' }]),
  C('the token limit', [{ content: 'cut' }], {}, 'length'),
]

const refusal = (
  dialect: DialectName,
  status: number,
  type: string,
  headers: Record<string, string> = {},
): Scenario => ({
  dialect,
  name: `a ${status}`,
  status,
  headers: { 'request-id': `req_${status}`, 'x-request-id': `req_${status}`, ...headers },
  answer:
    dialect === 'messages'
      ? { type: 'error', error: { type, message: `this is a ${status}` }, request_id: `req_${status}` }
      : { error: { message: `this is a ${status}`, type, param: null, code: null } },
})
const ERRORS: readonly Scenario[] = (['messages', 'chat'] as const).flatMap(dialect => [
  refusal(dialect, 400, 'invalid_request_error'),
  refusal(dialect, 401, 'authentication_error'),
  refusal(dialect, 404, 'not_found_error'),
  refusal(dialect, 429, 'rate_limit_error', { 'retry-after': '9' }),
  refusal(dialect, 500, 'api_error'),
  refusal(dialect, 529, 'overloaded_error'),
])
const ALL = [...ANSWERS, ...ERRORS]

interface Crossing {
  dialect: DialectName
  name: string
  request: Json
  /** What the upstream says in its dialect. */
  answer: Json
  /** What the client of the other one reads. */
  due: Json
}

const MESSAGE = {
  id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
  type: 'message',
  role: 'assistant',
  model: 'gpt-4.1-mini',
  stop_sequence: null,
  // 1200 of which 1000 were cached.
  usage: { input_tokens: 200, cache_read_input_tokens: 1000, output_tokens: 50 },
}
const COMPLETION = {
  id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
  object: 'chat.completion',
  model: 'claude-haiku-4-5',
  // 100 + 3000 written + 10,000 read.
  usage: {
    prompt_tokens: 13_100,
    completion_tokens: 50,
    total_tokens: 13_150,
    prompt_tokens_details: { cached_tokens: 10_000 },
  },
}

const CROSS: readonly Crossing[] = [
  {
    dialect: 'messages',
    name: 'text',
    request: { system: 'Be brief.', stop_sequences: ['END'] },
    answer: completionOf([{ content: 'Grüße, 世界 😀.' }]),
    due: { ...MESSAGE, content: [text('Grüße, 世界 😀.')], stop_reason: 'end_turn' },
  },
  {
    dialect: 'messages',
    name: 'tools',
    request: { tools: TOOLS.messages },
    answer: completionOf([
      { content: 'Let me see.', tool_calls: [call('a', '{"q": "世", "n": 1.5}'), call('b', '{}')] },
    ]),
    due: {
      ...MESSAGE,
      content: [
        text('Let me see.'),
        { type: 'tool_use', id: 'call_a', name: 'look', input: { q: '世', n: 1.5 } },
        { type: 'tool_use', id: 'call_b', name: 'look', input: {} },
      ],
      stop_reason: 'tool_use',
    },
  },
  {
    dialect: 'chat',
    name: 'text',
    request: { stop: ['END'] },
    answer: messageOf([text('Grüße, '), text('世界 😀.')]),
    due: {
      ...COMPLETION,
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Grüße, 世界 😀.', refusal: null }, finish_reason: 'stop' },
      ],
    },
  },
  {
    dialect: 'chat',
    name: 'tools',
    request: { tools: TOOLS.chat },
    answer: messageOf([use('a', { q: '世', n: 1.5 }), use('b', {})]),
    due: {
      ...COMPLETION,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'toolu_a', type: 'function', function: { name: 'look', arguments: '{"q":"世","n":1.5}' } },
              { id: 'toolu_b', type: 'function', function: { name: 'look', arguments: '{}' } },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
    },
  },
]

const MODEL = { messages: 'claude-haiku-4-5', chat: 'gpt-4.1-mini' }
const bodyOf = ({ dialect, request }: Scenario) => ({
  model: MODEL[dialect],
  max_tokens: 100,
  messages: [{ role: 'user', content: 'hi' }],
  ...request,
})

interface Asked {
  stream?: boolean
  stream_options?: { include_usage?: boolean }
}
const JSON_ONLY: Asked = {}
const COUNTED_STREAM: Asked = { stream: true, stream_options: { include_usage: true } }

function wireOf({ dialect, answer: whole, status = 200, headers = {} }: Scenario, asked: Asked): Wire {
  if (status !== 200 || asked.stream !== true) return json(whole, status, headers)
  // A chat upstream counts in a stream only when it is asked to.
  const { usage: _, ...uncounted } = whole
  const answer = dialect === 'chat' && asked.stream_options?.include_usage !== true ? uncounted : whole
  return sse(
    dialect === 'messages'
      ? messageFrames(answer as ReturnType<typeof messageOf> & Json)
      : completionFrames(answer as ReturnType<typeof completionOf> & Json),
    { 'request-id': 'req_stream', 'x-request-id': 'req_stream' },
  )
}

/**
 * One rung on the client's own dialect. A route of two rungs, to see that nothing more is tried when a client leaves;
 * and one of a rung of the other dialect.
 */
const CONFIG = (origin: string) => `
defaults = { mode = "enforce", gates = ["non-empty"] }
price = [
  { model = "second-messages/m", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "second-chat/m", input_per_mtok = 1, output_per_mtok = 5 },
]
provider = [
  { id = "second-messages", dialect = "messages", base_url = "${origin}/second" },
  { id = "second-chat", dialect = "chat", base_url = "${origin}/second" },
]
[[route]]
match = { api = "messages", header = { x-ladder = "cross" } }
ladder = ["second-chat/m"]
[[route]]
match = { api = "chat", header = { x-ladder = "cross" } }
ladder = ["second-messages/m"]
[[route]]
match = { api = "messages", header = { x-ladder = "two" } }
ladder = ["anthropic/claude-haiku-4-5", "second-messages/m"]
[[route]]
match = { api = "chat", header = { x-ladder = "two" } }
ladder = ["openai/gpt-4.1-mini", "second-chat/m"]
[[route]]
match = { api = "messages" }
ladder = ["anthropic/claude-haiku-4-5"]
[[route]]
match = { api = "chat" }
ladder = ["openai/gpt-4.1-mini"]
`

let upstream: ScriptedUpstream
/** What the upstream plays; each test sets its own. */
let script: (asked: Asked) => Wire
beforeAll(async () => {
  upstream = await scriptedUpstream()
  upstream.always((response, { body }) => play(script(JSON.parse(String(body)) as Asked), response))
})
beforeEach(() => {
  upstream.seen.length = 0
})
afterAll(() => upstream?.close())

const env = () => ({ ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: upstream.origin })
const MODES = {
  'observe on the Node host': () => servedRouter({ env: env() }),
  'observe on the portable relay': () => servedRouter({ env: env(), direct: false }),
  enforce: () => servedRouter({ env: env(), config: CONFIG(upstream.origin) }),
}
const label = ({ dialect, name }: Scenario) => `${dialect}: ${name}`
const FORMS = [
  ['JSON', false],
  ['a stream', true],
] as const

describe.each(Object.entries(MODES))(
  'the official clients, with only the base address changed, in %s',
  (mode, start) => {
    let router: ServedRouter
    let calls = 0
    beforeAll(async () => {
      router = await start()
    })
    afterAll(async () => {
      const { receipts } = await router.stop()
      expect(receipts).toHaveLength(calls)
    })

    /** The chat client reads the request id of the upstream, which is a test of its own below. */
    const shown = (seen: Seen) =>
      mode === 'observe on the Node host' ? seen : { ...seen, ...('requestId' in seen && { requestId: 'any' }) }

    describe.each(FORMS)('as %s', (_, stream) => {
      it.each(ALL.map(scenario => [label(scenario), scenario] as const))('%s', async (_label, scenario) => {
        script = asked => wireOf(scenario, asked)
        const body = bodyOf(scenario)
        // A refusal of a key or its share is remembered; each call has a key that nothing is known of.
        const apiKey = `key-${calls}`
        const direct = await callSdk(scenario.dialect, body, stream, { origin: upstream.origin, apiKey })
        const sent = upstream.seen.splice(0)
        const through = await callSdk(scenario.dialect, body, stream, { origin: router.origin, apiKey })
        calls += upstream.seen.length
        expect(shown(through)).toEqual(shown(direct))
        expect('error' in through).toBe(scenario.status !== undefined)
        expect(upstream.seen.map(one => String(one.body))).toEqual(sent.map(one => String(one.body)))
        expect(upstream.seen.map(one => one.url)).toEqual(sent.map(one => one.url))
      })
    })

    it.each([
      ['messages', 'JSON, before the head', false],
      ['messages', 'a stream, before the head', true],
      ['chat', 'JSON, before the head', false],
      ['chat', 'a stream, before the head', true],
    ] as const)(
      '%s: an abort of %s ends the upstream call within a second, and nothing more is tried',
      async (dialect, _form, stream) => {
        script = () => ({ body: [], end: 'stall' })
        await abortedCall(dialect, stream)
      },
    )

    it.each(['messages', 'chat'] as const)(
      '%s: an abort in the middle of a stream ends the upstream call within a second',
      async dialect => {
        const scenario = ANSWERS.find(one => one.dialect === dialect)!
        const frames = wireOf(scenario, COUNTED_STREAM)
        script = () => ({ ...frames, body: frames.body.slice(0, 3), end: 'stall' })
        await abortedCall(dialect, true)
      },
    )

    async function abortedCall(dialect: DialectName, stream: boolean): Promise<void> {
      const abort = new AbortController()
      const body = bodyOf(ANSWERS.find(one => one.dialect === dialect)!)
      const options = { origin: router.origin, headers: { 'x-ladder': 'two' }, signal: abort.signal }
      const ended = callSdk(dialect, body, stream, options)
      await expect.poll(() => upstream.seen.length).toBe(1)
      calls++
      const at = performance.now()
      abort.abort()
      await upstream.seen[0]!.aborted
      expect(performance.now() - at).toBeLessThan(1000)
      expect(await ended).toMatchObject({ error: expect.stringContaining('APIUserAbortError') })
      expect(upstream.seen).toHaveLength(1)
    }

    const keepsIds = async () => {
      const [messages, chat] = (['messages', 'chat'] as const).map(dialect => refusal(dialect, 404, 'not_found_error'))
      for (const scenario of [messages!, chat!]) {
        script = asked => wireOf(scenario, asked)
        calls++
        const seen = await callSdk(scenario.dialect, bodyOf(scenario), false, {
          origin: router.origin,
          apiKey: `ids-${calls}`,
        })
        expect(seen).toMatchObject({ requestId: 'req_404' })
      }
    }
    // The shared HTTP layer writes an id of its own over the upstream's, except where the Node host relays directly.
    const kept = mode === 'observe on the Node host' ? it : it.fails
    kept("reads the upstream's own request id", keepsIds)

    it.runIf(mode === 'enforce')('reads the same from a stream that the upstream did not send', async () => {
      for (const scenario of ANSWERS) {
        script = asked => wireOf(scenario, asked)
        const direct = await callSdk(scenario.dialect, bodyOf(scenario), true, { origin: upstream.origin })
        upstream.seen.length = 0
        script = () => wireOf(scenario, JSON_ONLY)
        const through = await callSdk(scenario.dialect, bodyOf(scenario), true, { origin: router.origin })
        calls += upstream.seen.length
        expect(through, label(scenario)).toMatchObject({ final: 'final' in direct ? direct.final : 'an answer' })
      }
    })

    it.runIf(mode === 'enforce')('reads the same as JSON where the upstream streamed unasked', async () => {
      for (const scenario of ANSWERS) {
        script = () => wireOf(scenario, JSON_ONLY)
        const direct = await callSdk(scenario.dialect, bodyOf(scenario), false, { origin: upstream.origin })
        upstream.seen.length = 0
        script = () => wireOf(scenario, COUNTED_STREAM)
        const through = await callSdk(scenario.dialect, bodyOf(scenario), false, { origin: router.origin })
        calls += upstream.seen.length
        expect('answer' in through && through.answer, label(scenario)).toEqual('answer' in direct && direct.answer)
      }
    })

    it.runIf(mode === 'enforce').each(CROSS.map(one => [`${one.dialect}: ${one.name}`, one] as const))(
      'reads a model of the other dialect, %s',
      async (_label, { dialect, request, answer, due }) => {
        const other = dialect === 'messages' ? 'chat' : 'messages'
        const scenario: Scenario = { dialect: other, name: '', answer }
        const body = bodyOf({ dialect, name: '', answer, request })
        for (const upstreamStreams of [true, false]) {
          script = asked => wireOf(scenario, upstreamStreams ? asked : JSON_ONLY)
          const options = { origin: router.origin, headers: { 'x-ladder': 'cross' } }
          const whole = await callSdk(dialect, body, false, options)
          const streamed = await callSdk(dialect, body, true, options)
          expect(whole).toMatchObject({ answer: due })
          expect(streamed).toMatchObject({ final: withoutUsage(due) })
        }
        calls += upstream.seen.length
        expect(new Set(upstream.seen.map(({ url }) => url))).toEqual(
          new Set([other === 'chat' ? '/second/v1/chat/completions' : '/second/v1/messages']),
        )
      },
    )
  },
)

/** A chat client that did not ask for usage gets none in a stream. */
function withoutUsage(due: Json): Json {
  if (due.object === undefined) return due
  const { usage: _, ...rest } = due
  return rest
}
