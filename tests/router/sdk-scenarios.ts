import { expect } from 'vitest'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import {
  completionFrames,
  completionOf,
  messageFrames,
  messageOf,
  responseFrames,
  responseOf,
} from '../upstream/frames.ts'
import { json, sse, type Wire } from '../upstream/wire.ts'

export type Json = Record<string, unknown>

export interface Scenario {
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
  responses: [
    {
      type: 'function',
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object', properties: { q: { type: 'string' } } },
      strict: false,
    },
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

const R = (name: string, items: readonly Json[], request: Json = {}, rest: Json = {}): Scenario => ({
  dialect: 'responses',
  name,
  request,
  answer: responseOf(items, rest),
})
const item = (...content: readonly Json[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content,
})
const outputText = (value: string, annotations: readonly Json[] = []) => ({
  type: 'output_text',
  text: value,
  annotations,
  logprobs: [],
})
const functionCall = (id: string, args: string) => ({
  id: `fc_${id}`,
  type: 'function_call',
  status: 'completed',
  call_id: `call_${id}`,
  name: 'look',
  arguments: args,
})

export const ANSWERS: readonly Scenario[] = [
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
  R('text', [item(outputText('Grüße, 世界 😀.'))]),
  R('two parts of a text', [item(outputText('Grüße, '), outputText('世界.'))]),
  R('tools', [item(outputText('Let me see.')), functionCall('a', '{"q": "世界", "n": 1.50}')], {
    tools: TOOLS.responses,
  }),
  R('parallel tools', [functionCall('a', '{"q":"one"}'), functionCall('b', '{}'), functionCall('c', '{"q":"three"}')], {
    tools: TOOLS.responses,
    tool_choice: 'required',
  }),
  R('images', [item(outputText('One pixel.'))], {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
          { type: 'input_text', text: 'What is it?' },
        ],
      },
    ],
  }),
  R(
    'reasoning',
    [{ id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'b3BhcXVl' }, item(outputText('Done.'))],
    { reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'], store: false },
  ),
  R('a search of the provider', [
    { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } },
    item(outputText('Found.')),
  ]),
  R('a refusal', [item({ type: 'refusal', refusal: 'I will not do that.' })]),
  R(
    'the token limit',
    [item(outputText('cut'))],
    {},
    {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    },
  ),
  R('an item that is not known', [{ id: 'x_1', type: 'hologram', cubes: [1, 2] }, item(outputText('see'))]),
]

export const refusal = (
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
export const ERRORS: readonly Scenario[] = (['messages', 'chat', 'responses'] as const).flatMap(dialect => [
  refusal(dialect, 400, 'invalid_request_error'),
  refusal(dialect, 401, 'authentication_error'),
  refusal(dialect, 404, 'not_found_error'),
  refusal(dialect, 429, 'rate_limit_error', { 'retry-after': '9' }),
  refusal(dialect, 500, 'api_error'),
  refusal(dialect, 529, 'overloaded_error'),
])
export const ALL = [...ANSWERS, ...ERRORS]

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

export const CROSS: readonly Crossing[] = [
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

const MODEL = { messages: 'claude-haiku-4-5', chat: 'gpt-4.1-mini', responses: 'gpt-4.1-mini' }
export const bodyOf = ({ dialect, request }: Scenario) => ({
  model: MODEL[dialect],
  ...(dialect === 'responses'
    ? { max_output_tokens: 100, input: 'hi' }
    : { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }),
  ...request,
})

export interface Asked {
  stream?: boolean
  stream_options?: { include_usage?: boolean }
}
export const JSON_ONLY: Asked = {}
export const COUNTED_STREAM: Asked = { stream: true, stream_options: { include_usage: true } }

export function wireOf({ dialect, answer: whole, status = 200, headers = {} }: Scenario, asked: Asked): Wire {
  if (status !== 200 || asked.stream !== true) return json(whole, status, headers)
  const ids = { 'request-id': 'req_stream', 'x-request-id': 'req_stream' }
  if (dialect === 'responses') return sse(responseFrames(whole as ReturnType<typeof responseOf> & Json), ids)
  // A chat upstream counts in a stream only when it is asked to.
  const { usage: _, ...uncounted } = whole
  const answer = dialect === 'chat' && asked.stream_options?.include_usage !== true ? uncounted : whole
  return sse(
    dialect === 'messages'
      ? messageFrames(answer as ReturnType<typeof messageOf> & Json)
      : completionFrames(answer as ReturnType<typeof completionOf> & Json),
    ids,
  )
}
