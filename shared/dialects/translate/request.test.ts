import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isCallId } from '../messages/messages.ts'
import { chatMeaning, messagesMeaning } from '../testing/meaning.ts'
import { chatRequest, messagesRequest } from '../testing/requests.ts'
import { responsesToChat } from './from-responses.ts'
import type { Translation } from './ledger.ts'
import { requestToChat } from './to-chat.ts'
import { requestToMessages } from './to-messages.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
type Request = Record<string, unknown>
const bytes = (value: unknown) => encoder.encode(typeof value === 'string' ? value : JSON.stringify(value))
const toMessages = (request: unknown, options = {}) =>
  requestToMessages(bytes(request), { model: 'asked-for', ...options })
const toChat = (request: unknown, options = {}) => requestToChat(bytes(request), { model: 'asked-for', ...options })

function text(translation: Translation): string {
  if (!translation.ok) throw new Error(translation.refused.join('; '))
  return decoder.decode(translation.body)
}
const body = (translation: Translation): Request => JSON.parse(text(translation))
const refused = (translation: Translation) =>
  translation.ok ? [] : translation.refused.map(line => line.split(':')[0])
const dropped = (translation: Translation) => (translation.ok ? translation.dropped : ['not translated'])

/** One call at a time without a choice is written as the choice `auto`. */
const plainChoice = (meaning: unknown) => {
  const { choice, single } = meaning as { choice: unknown; single: boolean }
  return { ...(meaning as object), choice: single && choice === 'auto' ? undefined : choice }
}

const callsOf = ({ messages }: Request): string[] =>
  (messages as { content: string | { type: string; id: string }[] }[])
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []))

it('completes a history for models that want signatures of Gemini or thoughts in it', () => {
  const turns = [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'r' }] },
  ]
  const input = [
    { role: 'user', content: 'q' },
    { type: 'function_call', call_id: 't', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 't', output: 'r' },
  ]
  for (const [model, signed] of [
    ['gemini-3.8-flash', 1],
    ['gemini-2.5-pro', 0],
  ] as const)
    for (const made of [
      toChat({ max_tokens: 9, messages: turns }, { model }),
      responsesToChat(bytes({ store: false, input }), { model }),
    ])
      expect(text(made).split('"extra_content":{"google":{"thought_signature":')).toHaveLength(signed + 1)
  for (const made of [
    toChat({ max_tokens: 9, messages: turns }, { model: 'deepseek/deepseek-v4-flash' }),
    responsesToChat(bytes({ store: false, input }), { model: 'moonshotai/Kimi-K2.6' }),
  ])
    expect((body(made).messages as object[]).map(turn => 'reasoning_content' in turn)).toEqual([false, true, false])
})

describe('a chat request in the messages dialect', () => {
  it('means the same, and the same again when it is translated back', () => {
    fc.assert(
      fc.property(chatRequest, request => {
        const there = body(toMessages(request))
        expect(plainChoice(messagesMeaning(there))).toEqual(plainChoice(chatMeaning(request)))
        const ids = callsOf(there)
        expect(ids.filter((id, at) => !isCallId(id) || ids.indexOf(id) !== at)).toEqual([])
        const back = body(toChat(there))
        expect(plainChoice(chatMeaning(back))).toEqual(plainChoice(chatMeaning(request)))
      }),
      { numRuns: 400 },
    )
  })

  it('carries the text of arguments and schemas as it was written', () => {
    const args = '{"n": 1.0, "big": 12345678901234567890, "e": "\\u00e9"}'
    const request = `{"max_tokens":5,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","maximum": 1e400}}}],"messages":[
      {"role":"user","content":"q"},
      {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(args)}}}]},
      {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":"r"}]}`
    const there = text(toMessages(request))
    expect(there).toContain(`"input":${args}`)
    expect(there).toContain('"input_schema":{"type":"object","maximum": 1e400}')
    expect(there).toContain(
      '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ab"},{"type":"text","text":"r"}]}',
    )
    expect(JSON.parse(text(toChat(there))).messages[1].tool_calls[0].function.arguments).toBe(args)
  })

  const simple = { max_tokens: 5000, messages: [{ role: 'user', content: 'q' }] }
  const withTool = { ...simple, tools: [{ type: 'function', function: { name: 'f' } }] }

  it.each<[string, Request]>([
    ['seed', { seed: 1 }],
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['logit_bias', { logit_bias: { 5: 1 } }],
    ['presence_penalty', { presence_penalty: 0.5 }],
    ['frequency_penalty', { frequency_penalty: -1 }],
    ['audio', { audio: { voice: 'v' } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['prediction', { prediction: { type: 'content' } }],
    ['store', { store: true }],
    ['service_tier', { service_tier: 'flex' }],
    ['web_search_options', { web_search_options: {} }],
    ['functions', { functions: [] }],
    ['temperature', { temperature: 1.5 }],
    ['stop[1]', { stop: ['a', ' \n'] }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['max_tokens', { max_tokens: 5, max_completion_tokens: 6 }],
    ['verbosity', { verbosity: 'low' }],
    ['a_field_of_next_year', { a_field_of_next_year: 0 }],
    ['temperature', { reasoning_effort: 'low', temperature: 0.5 }],
    ['tool_choice', { reasoning_effort: 'low', tool_choice: 'required', ...withTool }],
    ['reasoning_effort', { reasoning_effort: 'xhigh' }],
    ['tools[0]', { tools: [{ type: 'custom', custom: { name: 'x' } }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }],
    [
      'messages[0].content[0].image_url.url',
      {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/bmp;base64,AA' } }] }],
      },
    ],
    [
      'messages[0].content[0].file',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:text/plain;base64,AA' } }] }] },
    ],
    ['messages[1]', { messages: [...simple.messages, { role: 'system', content: 's' }] }],
    ['messages', { messages: [{ role: 'assistant', content: 'a' }, ...simple.messages] }],
    ['messages', { messages: [...simple.messages, { role: 'assistant', content: 'pre' }] }],
    ['messages[0].name', { messages: [{ role: 'user', name: 'bob', content: 'q' }] }],
    ['messages[0]', { messages: [{ role: 'user', content: ' ' }] }],
    [
      'messages[1].tool_calls[0].function.arguments',
      {
        messages: [
          ...simple.messages,
          {
            role: 'assistant',
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }],
          },
          { role: 'tool', tool_call_id: 'c', content: 'r' },
        ],
      },
    ],
  ])('is refused for %s when that cannot be said: %j', (path, fields) => {
    expect(refused(toMessages({ ...simple, ...fields }))[0]).toBe(path)
  })

  it.each<[Request, string[]]>([
    [{ n: 1, logprobs: false, store: false, service_tier: 'auto' }, ['n', 'logprobs', 'store', 'service_tier']],
    [
      { metadata: { a: 'b' }, prompt_cache_key: 'k', seed: null, verbosity: null },
      ['metadata', 'prompt_cache_key', 'seed', 'verbosity'],
    ],
    [
      { response_format: { type: 'text' }, modalities: ['text'], logit_bias: {} },
      ['response_format', 'modalities', 'logit_bias'],
    ],
    [{ stream_options: { include_usage: true } }, ['stream_options.include_usage']],
    [{ parallel_tool_calls: false }, ['parallel_tool_calls']],
    [{ reasoning_effort: 'low', max_tokens: 2047 }, ['reasoning_effort']],
  ])('lists what it leaves out of %j', (fields, paths) => {
    expect([...dropped(toMessages({ ...simple, ...fields }))].sort()).toEqual([...paths].sort())
  })

  it('leaves the format to a gate of the route only when the route says so', () => {
    const request = { ...simple, response_format: { type: 'json_schema', json_schema: {} } }
    expect(refused(toMessages(request))).toEqual(['response_format'])
    expect(dropped(toMessages(request, { jsonByGate: true }))).toEqual(['response_format'])
  })

  it('takes the limit of the model when the request has none, and leaves half of it for the answer', () => {
    const request = { messages: simple.messages, reasoning_effort: 'high' }
    expect(refused(toMessages(request))).toContain('max_tokens')
    expect(body(toMessages(request, { maxOutputTokens: 4000 }))).toMatchObject({
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 2000 },
    })
  })

  const think = (model: string, more: Request = {}) => {
    const text = new TextEncoder().encode(
      JSON.stringify({ model: 'asked-for', ...simple, reasoning_effort: 'high', ...more }),
    )
    const made = body(requestToMessages(text, { model }))
    return [made.thinking, made.output_config, made.max_tokens]
  }

  it.each([
    ['claude-sonnet-4-6', { type: 'enabled', budget_tokens: 2500 }, undefined],
    ['claude-opus-4-6', { type: 'enabled', budget_tokens: 2500 }, undefined],
    ['claude-opus-4-20250514', { type: 'enabled', budget_tokens: 2500 }, undefined],
    ['claude-3-7-sonnet-20250219', { type: 'enabled', budget_tokens: 2500 }, undefined],
    // These refuse `enabled`.
    ['claude-opus-4-7', { type: 'adaptive' }, { effort: 'high' }],
    ['us.anthropic.claude-opus-4-8-v1:0', { type: 'adaptive' }, { effort: 'high' }],
    ['claude-sonnet-5', { type: 'adaptive' }, { effort: 'high' }],
    ['claude-opus-5-5@20261001', { type: 'adaptive' }, { effort: 'high' }],
    // And these do not think.
    ['claude-3-5-haiku-20241022', undefined, undefined],
    ['claude-3-haiku-20240307', undefined, undefined],
  ])('asks %s to think as that model takes it', (model, thinking, outputConfig) => {
    expect(think(model)).toEqual([thinking, outputConfig, 5000])
  })

  it('does not ask a model to think where the history goes on after tools, without the thinking before them', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const tools = [{ type: 'function', function: { name: 'f' } }]
    const asked = [
      ...simple.messages,
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'r' },
    ]
    expect(think('claude-haiku-4-5', { tools, messages: asked })).toEqual([undefined, undefined, 5000])
    expect(think('claude-opus-4-7', { tools, messages: asked })[0]).toEqual({ type: 'adaptive' })
    const answered = [...asked, { role: 'assistant', content: 'done' }, { role: 'user', content: 'and now?' }]
    expect(think('claude-haiku-4-5', { tools, messages: answered })[0]).toEqual({
      type: 'enabled',
      budget_tokens: 2500,
    })
  })

  it('keeps one call at a time where there are tools to call', () => {
    expect(body(toMessages({ ...withTool, parallel_tool_calls: false })).tool_choice).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    })
    expect(body(toMessages(withTool)).tools).toEqual([{ name: 'f', input_schema: { type: 'object' } }])
  })
})

describe('a messages request in the chat dialect', () => {
  it('means the same, and the same again when it is translated back', () => {
    fc.assert(
      fc.property(messagesRequest, request => {
        const there = body(toChat(request))
        expect(plainChoice(chatMeaning(there))).toEqual(plainChoice(messagesMeaning(request)))
        const back = body(toMessages(there))
        expect(plainChoice(messagesMeaning(back))).toEqual(plainChoice(messagesMeaning(request)))
      }),
      { numRuns: 400 },
    )
  })

  const simple = { max_tokens: 5000, messages: [{ role: 'user', content: 'q' }] }
  const say = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const history = (content: unknown) => ({
    messages: [...simple.messages, { role: 'assistant', content }, { role: 'user', content: 'r' }],
  })
  const at = 'messages[1].content[0]'

  it.each<[string, Request]>([
    ['top_k', { top_k: 5 }],
    ['container', { container: 'c' }],
    ['mcp_servers', { mcp_servers: [] }],
    ['context_management', { context_management: {} }],
    ['output_config', { output_config: {} }],
    ['service_tier', { service_tier: 'standard_only' }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }],
    ['metadata.other', { metadata: { user_id: 'u', other: 1 } }],
    ['thinking', { thinking: { type: 'new' } }],
    ['tools[0]', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tools[0].input_examples', { tools: [{ name: 'f', input_schema: {}, input_examples: [{}] }] }],
    ['messages[0].content[0]', say([{ type: 'search_result' }])],
    ['messages[0].content[0].source', say([{ type: 'image', source: { type: 'file', file_id: 'f' } }])],
    ['messages[0].content[0].source', say([{ type: 'document', source: { type: 'url', url: 'u' } }])],
    [
      'messages[0].content[0].citations',
      say([{ type: 'document', source: { type: 'text', data: 'd' }, citations: { enabled: true } }]),
    ],
    [
      'messages[0].content[1]',
      say([
        { type: 'text', text: 'x' },
        { type: 'tool_result', tool_use_id: 't' },
      ]),
    ],
    [
      'messages[0].content[0].content[0]',
      say([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image' }] }]),
    ],
    [
      at,
      history([
        { type: 'thinking', thinking: 't', signature: 's' },
        { type: 'text', text: 'x' },
      ]),
    ],
    [
      at,
      history([
        { type: 'server_tool_use', id: 'i', name: 'web_search', input: {} },
        { type: 'text', text: 'x' },
      ]),
    ],
    [
      'messages[1].content[1]',
      history([
        { type: 'tool_use', id: 'i', name: 'n', input: {} },
        { type: 'text', text: 'x' },
      ]),
    ],
    ['messages', { messages: [...simple.messages, { role: 'assistant', content: 'pre' }] }],
  ])('is refused for %s when that cannot be said: %j', (path, fields) => {
    expect(refused(toChat({ ...simple, ...fields }))).toEqual([path])
  })

  it('leaves thinking out of the history only when the policy says so, and lists it', () => {
    const request = {
      ...simple,
      ...history([
        { type: 'redacted_thinking', data: 'd' },
        { type: 'text', text: 'x' },
      ]),
    }
    const translation = toChat(request, { stripThinking: true })
    expect(dropped(translation)).toEqual([at])
    expect(body(translation).messages).toEqual([
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'r' },
    ])
  })

  it('asks for exact usage when it streams, and uses the older limit for hosts that need it', () => {
    expect(body(toChat({ ...simple, stream: true }))).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 5000,
    })
    expect(body(toChat(simple, { legacyMaxTokens: true })).max_tokens).toBe(5000)
  })

  it('marks the result of a failed tool in its text, and names cache marks it leaves out', () => {
    const translation = toChat({
      ...simple,
      ...say([{ type: 'tool_result', tool_use_id: 't', is_error: true, content: 'no', cache_control: {} }]),
    })
    expect(body(translation).messages).toEqual([{ role: 'tool', tool_call_id: 't', content: 'Error: no' }])
    expect(dropped(translation)).toEqual(['messages[0].content[0].cache_control'])
  })
})

/** Members whose value is passed along whole, so that a field inside is not a field of the dialect. */
const OPAQUE = new Set(['parameters', 'input_schema', 'input', 'metadata', 'cache_control', 'arguments'])

/** Every object of a request that a translator reads. */
function objectsIn(value: unknown, found: Request[] = []): Request[] {
  if (Array.isArray(value)) for (const item of value) objectsIn(item, found)
  else if (typeof value === 'object' && value !== null) {
    found.push(value as Request)
    for (const [key, member] of Object.entries(value)) if (!OPAQUE.has(key)) objectsIn(member, found)
  }
  return found
}

describe.each([
  ['chat', chatRequest, toMessages],
  ['messages', messagesRequest, toChat],
] as const)('a field that nobody knows, anywhere in a %s request', (_name, requests, translate) => {
  it('is refused, and dropped with its name when it is null', () => {
    fc.assert(
      fc.property(
        requests as fc.Arbitrary<unknown>,
        fc.nat(),
        fc.constantFrom(null, 0, 'x', {}),
        (request, pick, value) => {
          const copy = JSON.parse(JSON.stringify(request))
          const objects = objectsIn(copy)
          const place = objects[pick % objects.length]!
          place.a_field_of_next_year = value
          const translation = translate(copy)
          const names = value === null ? dropped(translation) : refused(translation)
          expect(names.filter(path => path?.endsWith('a_field_of_next_year'))).toHaveLength(1)
        },
      ),
      { numRuns: 400 },
    )
  })

  it('leads to a result for any JSON at all', () => {
    const wrong = fc.oneof(
      fc.jsonValue(),
      fc
        .tuple(
          requests as fc.Arbitrary<object>,
          fc.dictionary(fc.constantFrom('messages', 'tools', 'tool_choice', 'system', 'stop'), fc.jsonValue()),
        )
        .map(([request, fields]) => ({ ...request, ...fields })),
    )
    fc.assert(
      fc.property(wrong, request => {
        expect(translate(request)).toHaveProperty('ok')
      }),
      { numRuns: 300 },
    )
  })
})
