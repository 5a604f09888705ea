import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chatRequest, messagesRequest } from '../testing/requests.ts'
import { responsesToChat, responsesToMessages } from './from-responses.ts'
import type { Translation } from './ledger.ts'
import { requestToChat } from './to-chat.ts'
import { requestToMessages } from './to-messages.ts'

type Request = Record<string, unknown>
/** What becomes of a member: members of the translation, paths that are left out or moved with a note, or the reason that stands in the way. */
type Due = { body: Request; notes?: string[] } | { refused: string }

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const MODEL = { model: 'm', maxOutputTokens: 4000, lenient: true, structuredOutput: true }

function result(made: Translation): { body: Request; notes: string[] } | { refused: string } {
  if (!made.ok) return { refused: made.refused.join('; ') }
  const noted = made.notes.map(({ path, to }) => (to === null ? path : `${path} -> ${to}`))
  return { body: JSON.parse(new TextDecoder().decode(made.body)) as Request, notes: [...noted, ...made.dropped].sort() }
}

function check(made: Translation, due: Due): void {
  const got = result(made)
  if ('refused' in due) expect(got).toEqual({ refused: expect.stringContaining(due.refused) })
  else expect(got).toEqual({ body: expect.objectContaining(due.body), notes: [...(due.notes ?? [])].sort() })
}

const ASK = { messages: [{ role: 'user', content: 'q' }] }
const SCHEMA = { type: 'object', additionalProperties: false }
const PNG = 'data:image/png;base64,AAAA'
const base64 = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
const chatCall = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
const F = { type: 'function', function: { name: 'f' } }

describe('what chat clients send, for a messages host', () => {
  it.each<[string, Request, Due]>([
    [
      'a schema of the answer',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: SCHEMA } } },
      { body: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } } },
    ],
    ['JSON of any form', { response_format: { type: 'json_object' } }, { refused: 'response_format' }],
    ['plain text', { response_format: { type: 'text' } }, { body: {}, notes: ['response_format'] }],
    ['a seed', { seed: 7 }, { body: {}, notes: ['seed'] }],
    [
      'penalties',
      { presence_penalty: 1, frequency_penalty: 0.5 },
      { body: {}, notes: ['frequency_penalty', 'presence_penalty'] },
    ],
    ['banned tokens', { logit_bias: { 5: -100 } }, { refused: 'logit_bias' }],
    ['log probabilities', { logprobs: true }, { refused: 'logprobs' }],
    ['no log probabilities', { logprobs: false }, { body: {}, notes: ['logprobs'] }],
    ['top log probabilities', { top_logprobs: 2 }, { refused: 'top_logprobs' }],
    ['one choice', { n: 1 }, { body: {}, notes: ['n'] }],
    ['two choices', { n: 2 }, { refused: 'n' }],
    ['a user', { user: 'u' }, { body: { metadata: { user_id: 'u' } } }],
    ['metadata', { metadata: { a: 'b' } }, { body: {}, notes: ['metadata'] }],
    ['a service tier', { service_tier: 'flex' }, { body: {}, notes: ['service_tier'] }],
    ['a stored completion', { store: true }, { body: {}, notes: ['store'] }],
    ['a prediction', { prediction: { type: 'content', content: 'x' } }, { body: {}, notes: ['prediction'] }],
    ['verbosity', { verbosity: 'low' }, { body: {}, notes: ['verbosity'] }],
    [
      'keys of caches',
      { prompt_cache_key: 'k', safety_identifier: 's' },
      { body: {}, notes: ['prompt_cache_key', 'safety_identifier'] },
    ],
    ['a field of next year', { a_field_of_next_year: 1 }, { body: {}, notes: ['a_field_of_next_year'] }],
    ['a stop that is empty', { stop: '' }, { body: {}, notes: ['stop[0]'] }],
    ['a stop among others', { stop: ['a', '\n'] }, { body: { stop_sequences: ['a'] }, notes: ['stop[1]'] }],
    ['a temperature above 1', { temperature: 1.6 }, { body: { temperature: 1 }, notes: ['temperature -> 1'] }],
    ['an effort', { reasoning_effort: 'medium' }, { body: { thinking: { type: 'enabled', budget_tokens: 2000 } } }],
    [
      'the highest effort',
      { reasoning_effort: 'xhigh' },
      { body: { thinking: { type: 'enabled', budget_tokens: 2000 } } },
    ],
    [
      'an effort with a forced call',
      { reasoning_effort: 'low', tools: [F], tool_choice: 'required' },
      { body: { tool_choice: { type: 'any' } }, notes: ['reasoning_effort'] },
    ],
    [
      'an effort with another temperature',
      { reasoning_effort: 'low', temperature: 0.2 },
      { body: { thinking: { type: 'enabled', budget_tokens: 1024 } }, notes: ['temperature'] },
    ],
    [
      'one call at a time',
      { tools: [F], parallel_tool_calls: false },
      { body: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } },
    ],
    ['a search by the provider', { web_search_options: {} }, { refused: 'web_search_options' }],
    ['sound', { modalities: ['text', 'audio'], audio: { voice: 'v' } }, { refused: 'audio' }],
    ['functions of old', { functions: [{ name: 'f' }] }, { refused: 'functions' }],
    ['a tool of free text', { tools: [{ type: 'custom', custom: { name: 'x' } }] }, { refused: 'tools[0]' }],
    [
      'a name of a speaker',
      { messages: [{ role: 'user', name: 'bob', content: 'q' }] },
      { body: {}, notes: ['messages[0].name'] },
    ],
    [
      'a mark of what is cached',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'q', cache_control: { type: 'ephemeral' } }] }] },
      {
        body: {
          messages: [{ role: 'user', content: [{ type: 'text', text: 'q', cache_control: { type: 'ephemeral' } }] }],
        },
      },
    ],
    [
      'a mark of what is cached of the system text',
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'long', cache_control: { type: 'ephemeral' } }] },
          { role: 'system', content: 'short' },
          ...ASK.messages,
        ],
      },
      {
        body: {
          system: [
            { type: 'text', text: 'long', cache_control: { type: 'ephemeral' } },
            { type: 'text', text: 'short' },
          ],
        },
      },
    ],
    [
      'a mark of what is cached up to the result of a tool, and ids that only other hosts take',
      {
        messages: [
          ...ASK.messages,
          { role: 'assistant', tool_calls: [{ ...chatCall, id: 'functions.f:0' }] },
          { role: 'tool', tool_call_id: 'functions.f:0', content: 'one' },
          {
            role: 'assistant',
            tool_calls: [
              { ...chatCall, id: 'functions.f:0' },
              { ...chatCall, id: '' },
            ],
          },
          {
            role: 'tool',
            tool_call_id: 'functions.f:0',
            content: [{ type: 'text', text: 'two', cache_control: { type: 'ephemeral' } }],
          },
          { role: 'tool', tool_call_id: '', content: 'three' },
        ],
      },
      {
        body: {
          messages: [
            { role: 'user', content: [{ type: 'text', text: 'q' }] },
            { role: 'assistant', content: [{ type: 'tool_use', id: 'functions_f_0', name: 'f', input: {} }] },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'functions_f_0', content: 'one' }] },
            {
              role: 'assistant',
              content: [
                { type: 'tool_use', id: 'functions_f_0_2', name: 'f', input: {} },
                { type: 'tool_use', id: '_', name: 'f', input: {} },
              ],
            },
            {
              role: 'user',
              content: [
                {
                  type: 'tool_result',
                  tool_use_id: 'functions_f_0_2',
                  content: [{ type: 'text', text: 'two', cache_control: { type: 'ephemeral' } }],
                },
                { type: 'tool_result', tool_use_id: '_', content: 'three' },
              ],
            },
          ],
        },
      },
    ],
    [
      'a system message after the first turn',
      {
        messages: [
          ...ASK.messages,
          { role: 'assistant', content: 'a' },
          { role: 'system', content: 'Be kind.' },
          ...ASK.messages,
        ],
      },
      { body: { system: 'Be kind.' }, notes: ['messages[2] -> part of the system text'] },
    ],
    [
      'reasoning of an earlier turn',
      { messages: [...ASK.messages, { role: 'assistant', content: 'a', reasoning_content: 'hm' }, ...ASK.messages] },
      { body: {}, notes: ['messages[1].reasoning_content'] },
    ],
    [
      'an image from a tool',
      {
        messages: [
          ...ASK.messages,
          { role: 'assistant', tool_calls: [chatCall] },
          {
            role: 'tool',
            tool_call_id: 'c',
            content: [
              { type: 'text', text: 'see' },
              { type: 'image_url', image_url: { url: PNG } },
            ],
          },
        ],
      },
      {
        body: {
          messages: [
            { role: 'user', content: [{ type: 'text', text: 'q' }] },
            { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
            {
              role: 'user',
              content: [
                {
                  type: 'tool_result',
                  tool_use_id: 'c',
                  content: [
                    { type: 'text', text: 'see' },
                    { type: 'image', source: base64 },
                  ],
                },
              ],
            },
          ],
        },
      },
    ],
    [
      'a word of the user before the result of a tool',
      {
        messages: [
          ...ASK.messages,
          { role: 'assistant', tool_calls: [chatCall] },
          { role: 'user', content: 'wait' },
          { role: 'tool', tool_call_id: 'c', content: 'done' },
        ],
      },
      {
        body: {
          messages: [
            { role: 'user', content: [{ type: 'text', text: 'q' }] },
            { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
            {
              role: 'user',
              content: [
                { type: 'tool_result', tool_use_id: 'c', content: 'done' },
                { type: 'text', text: 'wait' },
              ],
            },
          ],
        },
        notes: ['messages[3] -> before the text'],
      },
    ],
    [
      'a file by its id',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
      { refused: 'file' },
    ],
    [
      'a turn to go on with',
      { messages: [...ASK.messages, { role: 'assistant', content: 'pre' }] },
      { refused: 'messages' },
    ],
  ])('%s', (_, fields, due) => {
    check(requestToMessages(bytes({ max_tokens: 4000, ...ASK, ...fields }), MODEL), due)
  })

  it('a schema is left to models that are known to take one', () => {
    const request = { max_tokens: 9, ...ASK, response_format: { type: 'json_schema', json_schema: { schema: SCHEMA } } }
    const made = requestToMessages(bytes(request), { model: 'm', lenient: true })
    expect(result(made)).toEqual({ refused: expect.stringContaining('response_format') })
  })
})

const say = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const went = (content: unknown, next: unknown = 'r') => ({
  messages: [...ASK.messages, { role: 'assistant', content }, { role: 'user', content: next }],
})
const T = { name: 'f', input_schema: { type: 'object' } }
const use = { type: 'tool_use', id: 'c', name: 'f', input: {} }

describe('what messages clients send, for a chat host', () => {
  it.each<[string, Request, Due]>([
    ['management of the context', { context_management: { edits: [] } }, { body: {}, notes: ['context_management'] }],
    [
      'an effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      { body: { reasoning_effort: 'low' } },
    ],
    ['thinking', { thinking: { type: 'adaptive' } }, { body: { reasoning_effort: 'medium' } }],
    [
      'thinking between tools, which is off else',
      { thinking: { type: 'between_tools' } },
      { body: {}, notes: ['thinking'] },
    ],
    [
      'an effort without thinking',
      { thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
      { body: {}, notes: ['output_config.effort', 'thinking'] },
    ],
    [
      'a schema of the answer',
      { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
      {
        body: {
          response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: SCHEMA, strict: true } },
        },
      },
    ],
    ['another form of the answer', { output_config: { format: { type: 'xml' } } }, { refused: 'output_config.format' }],
    ['top_k', { top_k: 5 }, { body: {}, notes: ['top_k'] }],
    ['a service tier', { service_tier: 'standard_only' }, { body: {}, notes: ['service_tier'] }],
    ['other metadata', { metadata: { user_id: 'u', other: 1 } }, { body: { user: 'u' }, notes: ['metadata.other'] }],
    ['stop sequences', { stop_sequences: ['a'] }, { body: { stop: ['a'] } }],
    ['more of them than chat takes', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, { refused: 'stop_sequences' }],
    ['a field of next year', { a_field_of_next_year: 1 }, { body: {}, notes: ['a_field_of_next_year'] }],
    ['a place where it may be answered', { inference_geo: 'eu' }, { refused: 'inference_geo' }],
    ['a cache to fill and nothing more', { max_tokens: 0 }, { refused: 'max_tokens' }],
    ['a thread that its host keeps', { thread: { type: 'create' } }, { refused: 'thread' }],
    [
      'a wish for a summary in the place of an answer',
      { compaction: { type: 'summarize' } },
      { refused: 'compaction' },
    ],
    ['another who pays', { billing_policy: { type: 'billing_policy' } }, { refused: 'billing_policy' }],
    ['servers of tools', { mcp_servers: [{ url: 'u' }] }, { refused: 'mcp_servers' }],
    ['a container', { container: 'c' }, { refused: 'container' }],
    [
      'hints of a tool',
      { tools: [{ ...T, eager_input_streaming: true, defer_loading: true, cache_control: { type: 'ephemeral' } }] },
      {
        body: { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
        notes: ['tools[0].cache_control', 'tools[0].defer_loading', 'tools[0].eager_input_streaming'],
      },
    ],
    [
      'a search that is offered beside tools',
      { tools: [T, { type: 'web_search_20250305', name: 'web_search' }] },
      {
        body: { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
        notes: ['tools[1]'],
      },
    ],
    [
      'a search that it is about',
      { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      { refused: 'tools[0]' },
    ],
    [
      'a search that it asks for',
      {
        tools: [T, { type: 'web_search_20250305', name: 'web_search' }],
        tool_choice: { type: 'tool', name: 'web_search' },
      },
      { refused: 'tools[1]' },
    ],
    [
      'a tool of the vendor that the client runs',
      { tools: [T, { type: 'bash_20250124', name: 'bash' }] },
      { refused: 'tools[1]' },
    ],
    [
      'an image from a tool',
      went(
        [use],
        [
          {
            type: 'tool_result',
            tool_use_id: 'c',
            content: [
              { type: 'text', text: 'see' },
              { type: 'image', source: base64 },
            ],
          },
        ],
      ),
      {
        body: {
          messages: [
            ...ASK.messages,
            { role: 'assistant', content: null, tool_calls: [chatCall] },
            { role: 'tool', tool_call_id: 'c', content: 'see' },
            { role: 'user', content: [{ type: 'image_url', image_url: { url: PNG } }] },
          ],
        },
        notes: ['messages[2].content[0].content[1] -> a message of the user'],
      },
    ],
    [
      'a word before the result of a tool',
      went(
        [use],
        [
          { type: 'text', text: 'wait' },
          { type: 'tool_result', tool_use_id: 'c', content: 'ok' },
        ],
      ),
      {
        body: {
          messages: [
            ...ASK.messages,
            { role: 'assistant', content: null, tool_calls: [chatCall] },
            { role: 'tool', tool_call_id: 'c', content: 'ok' },
            { role: 'user', content: [{ type: 'text', text: 'wait' }] },
          ],
        },
        notes: ['messages[2].content[1] -> before the content'],
      },
    ],
    [
      'a word after a call',
      went([use, { type: 'text', text: 'now' }], [{ type: 'tool_result', tool_use_id: 'c', content: 'ok' }]),
      { body: {}, notes: ['messages[1].content[1] -> before the calls'] },
    ],
    [
      'thinking of an earlier turn',
      went([
        { type: 'thinking', thinking: 't', signature: 's' },
        { type: 'text', text: 'x' },
      ]),
      {
        body: { messages: [...ASK.messages, { role: 'assistant', content: 'x' }, { role: 'user', content: 'r' }] },
        notes: ['messages[1].content[0]'],
      },
    ],
    [
      'a system message among the turns',
      {
        messages: [...ASK.messages, { role: 'system', content: [{ type: 'text', text: 'Be kind.' }] }, ...ASK.messages],
      },
      { body: { messages: [...ASK.messages, { role: 'system', content: 'Be kind.' }, ...ASK.messages] } },
    ],
    [
      'a text with a title',
      say([{ type: 'document', title: 'On', source: { type: 'text', media_type: 'text/plain', data: 'this' } }]),
      {
        body: { messages: [{ role: 'user', content: [{ type: 'text', text: 'On\n\nthis' }] }] },
        notes: ['messages[0].content[0].title -> its first line'],
      },
    ],
    [
      'citations',
      say([{ type: 'document', source: { type: 'text', data: 'd' }, citations: { enabled: true } }]),
      { refused: 'citations' },
    ],
    ['a document at an address', say([{ type: 'document', source: { type: 'url', url: 'u' } }]), { refused: 'source' }],
    ['a result of a search', say([{ type: 'search_result' }]), { refused: 'search_result' }],
    [
      'a call that the provider made',
      went([{ type: 'server_tool_use', id: 'i', name: 'web_search', input: {} }]),
      { refused: 'server_tool_use' },
    ],
    [
      'a turn to go on with',
      { messages: [...ASK.messages, { role: 'assistant', content: 'pre' }] },
      { refused: 'messages' },
    ],
  ])('%s', (_, fields, due) => {
    check(requestToChat(bytes({ max_tokens: 4000, ...ASK, ...fields }), { model: 'm', lenient: true }), due)
  })
})

const LOOK = { type: 'function', name: 'f', parameters: { type: 'object' } }
const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }

describe('what clients of the Responses API send, for a chat host', () => {
  it.each<[string, Request, Due]>([
    [
      'the tools that Codex offers',
      {
        tools: [
          LOOK,
          { type: 'web_search', external_web_access: true },
          { type: 'namespace', name: 'agents', tools: [] },
        ],
        tool_choice: 'auto',
      },
      {
        body: { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
        notes: ['tools[1]', 'tools[2]'],
      },
    ],
    ['a search that it is about', { tools: [{ type: 'web_search' }] }, { refused: 'tools[0]' }],
    [
      'a search that it asks for',
      { tools: [LOOK, { type: 'web_search' }], tool_choice: { type: 'web_search' } },
      { refused: 'tools[1]' },
    ],
    ['a search in files of the provider', { tools: [LOOK, { type: 'file_search' }] }, { refused: 'tools[1]' }],
    ['truncation', { truncation: 'auto' }, { body: {}, notes: ['truncation'] }],
    ['a service tier', { service_tier: 'priority' }, { body: {}, notes: ['service_tier'] }],
    ['a field of next year', { hologram: true }, { body: {}, notes: ['hologram'] }],
    [
      'sealed reasoning',
      { input: [...ASK.messages, { type: 'reasoning', summary: [], encrypted_content: 'x' }] },
      { body: ASK, notes: ['input[1]'] },
    ],
    [
      'an image from a tool',
      {
        input: [
          ...ASK.messages,
          call,
          { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: PNG }] },
        ],
      },
      {
        body: {
          messages: [
            ...ASK.messages,
            { role: 'assistant', content: null, tool_calls: [chatCall] },
            { role: 'tool', tool_call_id: 'c', content: '' },
            { role: 'user', content: [{ type: 'image_url', image_url: { url: PNG } }] },
          ],
        },
        notes: ['input[2].output[0] -> a message of the user'],
      },
    ],
    [
      'a word after a call',
      {
        input: [
          ...ASK.messages,
          call,
          { role: 'assistant', content: [{ type: 'output_text', text: 'now' }] },
          { type: 'function_call_output', call_id: 'c', output: 'ok' },
        ],
      },
      {
        body: {
          messages: [
            ...ASK.messages,
            { role: 'assistant', content: 'now', tool_calls: [chatCall] },
            { role: 'tool', tool_call_id: 'c', content: 'ok' },
          ],
        },
        notes: ['input[2] -> before the calls'],
      },
    ],
    ['log probabilities', { include: ['message.output_text.logprobs'] }, { refused: 'include[0]' }],
    ['an answer that is to be kept', { store: true }, { refused: 'store' }],
    ['a conversation of its provider', { previous_response_id: 'r' }, { refused: 'previous_response_id' }],
  ])('%s', (_, fields, due) => {
    const kept = 'refused' in due ? due : { ...due, notes: [...(due.notes ?? []), 'store'] }
    check(
      responsesToChat(bytes({ model: 'x', input: 'q', store: false, ...fields }), { model: 'm', lenient: true }),
      kept,
    )
  })

  it('a schema goes on to a messages host', () => {
    const text = { format: { type: 'json_schema', name: 'x', schema: SCHEMA }, verbosity: 'low' }
    const made = responsesToMessages(bytes({ model: 'x', input: 'q', store: false, text }), MODEL)
    check(made, {
      body: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
      notes: ['store', 'text.verbosity'],
    })
  })
})

describe.each([
  ['chat', chatRequest, (one: unknown) => requestToMessages(bytes(one), MODEL)],
  ['messages', messagesRequest, (one: unknown) => requestToChat(bytes(one), { model: 'm', lenient: true })],
] as const)('a %s request that is translated leniently', (from, requests, translate) => {
  it('is what it is when it is translated strictly, where that can be', () => {
    fc.assert(
      fc.property(requests as fc.Arbitrary<Request>, request => {
        const lenient = translate(request)
        const other =
          from === 'chat'
            ? requestToMessages(bytes(request), { model: 'm', maxOutputTokens: 4000 })
            : requestToChat(bytes(request), { model: 'm' })
        if (other.ok) expect(result(lenient)).toEqual(result(other))
      }),
      { numRuns: 300 },
    )
  })

  it('leads to a result for any JSON at all', () => {
    const names = fc.constantFrom(
      'messages',
      'tools',
      'tool_choice',
      'system',
      'stop',
      'output_config',
      'response_format',
    )
    const wrong = fc.oneof(
      fc.jsonValue(),
      fc
        .tuple(requests as fc.Arbitrary<object>, fc.dictionary(names, fc.jsonValue()))
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
