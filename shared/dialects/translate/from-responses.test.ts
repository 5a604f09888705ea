import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expectWithin } from '../../../tests/crowding.ts'
import type { Candidate, CandidateChoice, DialectName } from '../candidate.ts'
import { dialects } from '../dialects.ts'
import { PLAIN_BILLING } from '../estimate.ts'
import type { JsonObject } from '../json-value.ts'
import { someText, text } from '../testing/answers.ts'
import { translateAnswer } from './answer.ts'
import { responsesToChat, responsesToMessages } from './from-responses.ts'
import { requestToMessages } from './to-messages.ts'

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, never>
const base = { model: 'gpt', input: 'hi', store: false }

function toChat(request: object): Record<string, never> {
  const made = responsesToChat(encode({ ...base, ...request }), { model: 'm' })
  if (!made.ok) throw new Error(made.refused.join('; '))
  return decode(made.body)
}
function toMessages(request: object): Record<string, never> {
  const made = responsesToMessages(encode({ ...base, ...request }), { model: 'claude-haiku-4-5', maxOutputTokens: 999 })
  if (!made.ok) throw new Error(made.refused.join('; '))
  return decode(made.body)
}
function refused(request: object, stripThinking = false): readonly string[] {
  const made = responsesToChat(encode({ ...base, ...request }), { model: 'm', stripThinking })
  return made.ok ? [] : made.refused
}

const LOOP = [
  { role: 'developer', content: [{ type: 'input_text', text: 'Be kind.' }] },
  { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'What is in it?' }] },
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null },
  {
    type: 'message',
    id: 'msg_1',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'Let me see.', annotations: [] }],
  },
  { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"q": 1.0}', status: 'completed' },
  { type: 'function_call', call_id: 'call_2', name: 'look', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'A cat.' },
  { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'A dog.' }] },
]
const LOOK = { type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: false }

describe('a request of the Responses API for a chat host', () => {
  it('keeps its turns, its calls of tools and their results', () => {
    const call = (id: string, args: string) => ({ id, type: 'function', function: { name: 'look', arguments: args } })
    expect(toChat({ instructions: 'Be short.', input: LOOP, tools: [LOOK], parallel_tool_calls: true })).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'What is in it?' },
        { role: 'assistant', content: 'Let me see.', tool_calls: [call('call_1', '{"q": 1.0}'), call('call_2', '{}')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'A cat.' },
        { role: 'tool', tool_call_id: 'call_2', content: 'A dog.' },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: false },
        },
      ],
      parallel_tool_calls: true,
    })
  })

  it('keeps settings, formats and media under their other names', () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' }
    const file = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }
    const schema = { type: 'json_schema', name: 'seen', schema: { type: 'object' }, strict: true }
    expect(
      toChat({
        input: [{ role: 'user', content: [{ type: 'input_text', text: 'See.' }, image, file] }],
        stream: true,
        max_output_tokens: 9,
        temperature: 0.5,
        reasoning: { effort: 'low', summary: 'auto' },
        text: { format: schema, verbosity: 'low' },
        user: 'u',
        include: ['reasoning.encrypted_content'],
        metadata: { a: 'b' },
        tool_choice: 'auto',
        truncation: 'disabled',
      }),
    ).toEqual({
      model: 'm',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See.' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
          ],
        },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 9,
      temperature: 0.5,
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'seen', schema: { type: 'object' }, strict: true } },
      user: 'u',
      verbosity: 'low',
    })
  })

  it('takes tools of free text, and the calls of them', () => {
    const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' }
    const made = toChat({
      input: [
        { role: 'user', content: 'x' },
        { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** a' },
        { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
      ],
      tools: [{ type: 'custom', name: 'patch', description: 'Patches.', format: grammar }],
      tool_choice: { type: 'custom', name: 'patch' },
    })
    expect(made).toMatchObject({
      messages: [
        {},
        { tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'patch', input: '*** a' } }] },
        { role: 'tool', content: 'done' },
      ],
      tools: [
        {
          type: 'custom',
          custom: { name: 'patch', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } } },
        },
      ],
      tool_choice: { type: 'custom', custom: { name: 'patch' } },
    })
  })

  it.each<[string, object, string]>([
    ['an answer that is to be kept', { store: true }, 'store'],
    ['one that is kept by default', { store: undefined }, 'store'],
    ['a conversation of its provider', { previous_response_id: 'resp_1' }, 'previous_response_id'],
    ['a named conversation', { conversation: { id: 'conv_1' } }, 'conversation'],
    ['a prompt of its provider', { prompt: { id: 'pmpt_1' } }, 'prompt'],
    ['an item without its content', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'item_reference'],
    ['the same without a type', { input: [{ id: 'msg_1' }] }, 'item_reference'],
    ['sealed reasoning', { input: [{ type: 'reasoning', summary: [], encrypted_content: 'x' }] }, 'input[0]'],
    ['a tool of the provider', { tools: [{ type: 'web_search' }] }, 'tools[0]'],
    [
      'a file of the provider',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input[0]',
    ],
    ['truncation', { truncation: 'auto' }, 'truncation'],
    ['log probabilities', { include: ['message.output_text.logprobs'] }, 'include[0]'],
    [
      'an image from a tool',
      { input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image' }] }] },
      'output[0]',
    ],
    ['what is not known', { hologram: true }, 'hologram'],
  ])('refuses %s', (_, request, path) => {
    const list = refused(request)
    expect(list.length).toBeGreaterThan(0)
    expect(list.join('; ')).toContain(path)
  })

  it('leaves sealed reasoning out where the route says that it may', () => {
    const sealed = { type: 'reasoning', summary: [], encrypted_content: 'x' }
    expect(refused({ input: [{ role: 'user', content: 'hi' }, sealed] }, true)).toEqual([])
  })
})

describe('a long history', () => {
  const timed = (translate: () => { ok: boolean }) => {
    const from = performance.now()
    expect(translate().ok).toBe(true)
    return performance.now() - from
  }
  const listOf = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))
  const options = { model: 'm', maxOutputTokens: 9, jsonByGate: false, stripThinking: false, lenient: true }

  it('takes time by its length: calls of one turn, and text between them', () => {
    const calls = listOf(80_000, at => ({ type: 'function_call', call_id: `c${at}`, name: 'a', arguments: '{}' }))
    const said = listOf(80_000, () => ({ type: 'message', role: 'assistant', content: 'some words, again and again' }))
    const end = { role: 'user', content: 'go on' }
    const body = encode({ ...base, input: [...calls, ...said, end] })
    expectWithin(
      timed(() => responsesToChat(body, options)),
      3000,
    )
  })

  it('takes time by its length: results of tools behind texts of the user', () => {
    const messages = listOf(100_000, at =>
      at % 2 === 0 ? { role: 'user', content: 'x' } : { role: 'tool', tool_call_id: `c${at}`, content: 'y' },
    )
    const body = encode({ model: 'gpt', messages })
    expectWithin(
      timed(() => requestToMessages(body, options)),
      1500,
    )
  })

  it('may have more parts in a message than a function has arguments', () => {
    const parts = listOf(200_000, () => ({ type: 'text', text: 'x' }))
    const [user, system] = ['user', 'system'].map(role => ({ role, content: parts }))
    expect(requestToMessages(encode({ model: 'gpt', messages: [system, user, user] }), options).ok).toBe(true)
  })
})

describe('the same for a messages host', () => {
  it('goes on from the chat request', () => {
    expect(
      toMessages({ instructions: 'Be short.', input: LOOP, tools: [LOOK], text: { verbosity: 'low' }, user: 'u' }),
    ).toMatchObject({
      model: 'claude-haiku-4-5',
      max_tokens: 999,
      system: 'Be short.\n\nBe kind.',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What is in it?' }] },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', id: 'call_1', name: 'look', input: { q: 1 } },
            { type: 'tool_use', id: 'call_2', name: 'look', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'call_1', content: 'A cat.' },
            { type: 'tool_result', tool_use_id: 'call_2', content: 'A dog.' },
          ],
        },
      ],
      tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object' }, strict: false }],
      metadata: { user_id: 'u' },
    })
  })

  it('refuses tools of free text and formats that no gate checks', () => {
    const options = { model: 'm', maxOutputTokens: 9 }
    const tool = responsesToMessages(encode({ ...base, tools: [{ type: 'custom', name: 'patch' }] }), options)
    expect(tool).toMatchObject({ ok: false, refused: ['tools[0]: only function tools can be translated'] })
    const format = { format: { type: 'json_object' } }
    expect(responsesToMessages(encode({ ...base, text: format }), options).ok).toBe(false)
    expect(responsesToMessages(encode({ ...base, text: format }), { ...options, jsonByGate: true }).ok).toBe(true)
  })
})

describe('an answer as a response', () => {
  const choice = fc.record({
    index: fc.constant(0),
    text,
    toolCalls: fc.uniqueArray(fc.record({ id: someText, name: someText, arguments: text }), {
      maxLength: 3,
      selector: ({ id }) => id,
    }),
    refusal: fc.option(someText, { freq: 3 }),
    thinking: text,
    extras: fc.constant([]),
  })
  const finishes = {
    chat: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter'),
    messages: fc.constantFrom('end_turn', 'max_tokens', 'tool_use', 'refusal'),
  }
  const count = fc.nat(10_000)
  const tokens = fc.record({
    uncached: count,
    cache_write_5m: count,
    cache_write_1h: fc.constant(0),
    cache_read: count,
    output: count,
  })

  it('keeps text, calls, refusal, usage and why it ended, whole and as a stream', () => {
    fc.assert(
      fc.property(
        fc
          .constantFrom('chat' as const, 'messages' as const)
          .chain(from => fc.tuple(fc.constant(from), choice, finishes[from], tokens)),
        ([from, said, finish, used]) => {
          const one: CandidateChoice =
            from === 'messages'
              ? { ...said, finish, refusal: finish === 'refusal' ? said.text : null }
              : { ...said, finish }
          const candidate = candidateOf(from, one, used)
          const made = translateAnswer(candidate, 'responses', { traceId: 'a-b', created: 1 })
          if (!made.ok) throw new Error(made.refused.join('; '))
          const back = dialects.responses.decodeJson(made.body)
          if (!back.ok) throw new Error(back.detail)
          const [got] = back.candidate.choices
          expect(got?.text).toBe(finish === 'refusal' ? '' : one.text)
          expect(got?.refusal).toBe(one.refusal === '' ? null : one.refusal)
          expect(got?.toolCalls).toEqual(one.toolCalls)
          expect(back.candidate.tokens).toEqual(used)
          expect(dialects.responses.finishKind(got?.finish ?? '')).toBe(kindOf(from, one))
          expect((decode(made.body) as JsonObject).store).toBe(false)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is none of a turn that is paused, nor of a reason that is not known', () => {
    for (const finish of ['pause_turn', 'sleepy']) {
      const paused = candidateOf('messages', { ...EMPTY, text: 'x', finish }, null)
      expect(translateAnswer(paused, 'responses', { traceId: 'a', created: 1 }).ok).toBe(false)
    }
  })

  it('is none of two calls by one id, which clients would take for one', () => {
    const call = { id: 'c1', name: 'look', arguments: '{}' }
    const doubled = candidateOf('chat', { ...EMPTY, toolCalls: [call, call] }, null)
    expect(translateAnswer(doubled, 'responses', { traceId: 'a', created: 1 }).ok).toBe(false)
  })

  it('gives calls of free text back as such', () => {
    const call = { id: 'c1', name: 'patch', arguments: '*** a', custom: true as const }
    const made = translateAnswer(
      candidateOf('chat', { ...EMPTY, toolCalls: [call], finish: 'tool_calls' }, null),
      'responses',
      {
        traceId: 'a-b',
        created: 1,
      },
    )
    expect(made.ok && decode(made.body)).toMatchObject({
      output: [{ id: 'ctc_ab_0', type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** a' }],
    })
  })
})

const EMPTY: CandidateChoice = {
  index: 0,
  text: '',
  toolCalls: [],
  refusal: null,
  thinking: '',
  finish: 'stop',
  extras: [],
}

function candidateOf(dialect: DialectName, choice: CandidateChoice, tokens: Candidate['tokens']): Candidate {
  return { dialect, id: 'x', model: 'm', choices: [choice], tokens, billing: PLAIN_BILLING }
}

function kindOf(from: 'chat' | 'messages', { finish, refusal }: CandidateChoice): string {
  const kind = dialects[from].finishKind(finish)
  if (kind === 'tool') return 'complete'
  // Where the model says its refusal, the response is complete.
  return kind === 'refusal' && refusal !== null && refusal !== '' ? 'complete' : kind
}
