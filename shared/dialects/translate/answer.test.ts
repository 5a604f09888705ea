import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Candidate, CandidateChoice, DialectName, Tokens } from '../candidate.ts'
import { chatTokens } from '../chat/usage.ts'
import { dialects } from '../dialects.ts'
import { PLAIN_BILLING } from '../estimate.ts'
import type { JsonObject } from '../json-value.ts'
import { isCallId } from '../messages/messages.ts'
import { messagesUsage } from '../messages/usage.ts'
import { someText } from '../testing/answers.ts'
import { chatUsageOf, messagesUsageOf, translateAnswer } from './answer.ts'
import { translateError } from './error.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const options = { traceId: '0198-aa-bb', created: 1_700_000_000 }
const counted: Tokens = { uncached: 10, cache_write_5m: 3, cache_write_1h: 4, cache_read: 20, output: 5 }

function candidate(dialect: DialectName, choice: Partial<CandidateChoice>, tokens: Tokens | null = counted): Candidate {
  const finish = dialect === 'chat' ? 'stop' : 'end_turn'
  const whole = { index: 0, text: '', toolCalls: [], refusal: null, thinking: '', finish, extras: [], ...choice }
  return {
    dialect,
    id: 'upstream-id',
    model: 'their-model',
    choices: [whole],
    tokens,
    billing: PLAIN_BILLING,
  }
}

function translated(from: Candidate, to: DialectName, more = {}): Record<string, never> {
  const result = translateAnswer(from, to, { ...options, ...more })
  if (!result.ok) throw new Error(result.refused.join('; '))
  return JSON.parse(decoder.decode(result.body))
}
const refused = (from: Candidate, to: DialectName) => {
  const result = translateAnswer(from, to, options)
  return result.ok ? [] : result.refused
}

describe('an answer for a client of the other dialect', () => {
  it('has ids of calls that a messages host takes back, and that no other answer has', () => {
    const call = (id: string) => ({ id, name: 'f', arguments: '{}' })
    const toolCalls = ['call_0_0', 'functions.f:0', 'call_7', 'call_7'].map(call)
    const { content } = translated(candidate('chat', { toolCalls, finish: 'tool_calls' }), 'messages')
    expect((content as unknown as { id: string }[]).map(({ id }) => id)).toEqual([
      ...['tu_0198aabb_0', 'tu_0198aabb_1', 'call_7', 'tu_0198aabb_3'],
    ])
  })

  it('has the client’s shape, its own id and the upstream’s model', () => {
    const call = { id: 'call_1', name: 'add', arguments: '{"a": 1.0}' }
    expect(translated(candidate('chat', { text: 'hi', toolCalls: [call], finish: 'tool_calls' }), 'messages')).toEqual({
      id: 'msg_0198aabb',
      type: 'message',
      role: 'assistant',
      model: 'their-model',
      content: [
        { type: 'text', text: 'hi' },
        { type: 'tool_use', id: 'call_1', name: 'add', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 7,
        cache_read_input_tokens: 20,
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 },
        output_tokens: 5,
      },
    })
    expect(translated(candidate('messages', { toolCalls: [call], finish: 'tool_use' }), 'chat')).toEqual({
      id: 'chatcmpl-0198aabb',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'their-model',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            refusal: null,
            tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a": 1.0}' } }],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 37,
        completion_tokens: 5,
        total_tokens: 42,
        prompt_tokens_details: { cached_tokens: 20 },
      },
    })
  })

  it.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['tool_calls', 'tool_use'],
    ['function_call', 'tool_use'],
    ['content_filter', 'refusal'],
  ])('ends with the word for %s in the messages dialect: %s', (finish, stop) => {
    expect(translated(candidate('chat', { text: 'x', finish }), 'messages').stop_reason).toBe(stop)
  })

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
  ])('ends with the word for %s in the chat dialect: %s', (finish, word) => {
    const { choices } = translated(candidate('messages', { text: 'x', finish }), 'chat') as never as {
      choices: JsonObject[]
    }
    expect(choices[0]?.finish_reason).toBe(word)
  })

  it('is refused when its end, its calls or its number have no counterpart', () => {
    expect(refused(candidate('messages', { finish: 'pause_turn' }), 'chat')).toEqual([
      'stop_reason: pause_turn has no counterpart',
    ])
    expect(refused(candidate('messages', { finish: 'a_new_reason' }), 'chat')).toHaveLength(1)
    expect(refused(candidate('chat', { finish: 'a_new_reason' }), 'messages')).toHaveLength(1)
    const broken = { id: 'c', name: 'f', arguments: '{"a":' }
    expect(refused(candidate('chat', { toolCalls: [broken] }), 'messages')).toEqual([
      'tool_calls[0].function.arguments: expected the text of a JSON object',
    ])
    const two = candidate('chat', { text: 'a' })
    expect(refused({ ...two, choices: [...two.choices, ...two.choices] }, 'messages')).toEqual([
      'choices: expected exactly one',
    ])
  })

  it('keeps a refusal a refusal', () => {
    const there = translated(candidate('chat', { refusal: 'no' }), 'messages')
    expect(there).toMatchObject({ content: [{ type: 'text', text: 'no' }], stop_reason: 'refusal' })
    const back = translated(candidate('messages', { text: 'no', refusal: 'no', finish: 'refusal' }), 'chat')
    expect(back).toMatchObject({
      choices: [{ message: { content: null, refusal: 'no' }, finish_reason: 'content_filter' }],
    })
  })

  it('tells a messages client to run the calls of a forced tool choice, which chat ends with stop', () => {
    const call = { id: 'c', name: 'f', arguments: '' }
    expect(translated(candidate('chat', { toolCalls: [call], finish: 'stop' }), 'messages')).toMatchObject({
      content: [{ type: 'tool_use', input: {} }],
      stop_reason: 'tool_use',
    })
  })

  it('names what was left out', () => {
    const result = translateAnswer(
      candidate('chat', { text: 'x', extras: ['reasoning_content', 'logprobs'] }),
      'messages',
      options,
    )
    expect(result).toMatchObject({ ok: true, dropped: ['reasoning_content', 'logprobs'] })
  })

  it('never shows a count of zero for what nobody counted', () => {
    const uncounted = candidate('chat', { text: 'twelve bytes' }, null)
    expect(translated(uncounted, 'messages').usage).toMatchObject({ output_tokens: 3 })
    expect(translated(uncounted, 'messages', { tokens: counted }).usage).toMatchObject({
      input_tokens: 10,
      output_tokens: 5,
    })
  })

  it('says the same after a way there and back', () => {
    const choice = fc.record({
      text: someText,
      toolCalls: fc.array(
        fc.record({
          id: someText,
          name: someText,
          arguments: fc.dictionary(someText, fc.jsonValue({ maxDepth: 1 })).map(v => JSON.stringify(v, null, 1)),
        }),
        { maxLength: 2 },
      ),
    })
    fc.assert(
      fc.property(choice, fc.constantFrom<DialectName>('messages', 'chat'), (said, from) => {
        const to = from === 'chat' ? 'messages' : 'chat'
        const finish =
          said.toolCalls.length > 0
            ? from === 'chat'
              ? 'tool_calls'
              : 'tool_use'
            : from === 'chat'
              ? 'stop'
              : 'end_turn'
        const start = candidate(from, { ...said, finish })
        const there = decoded(to, translateAnswer(start, to, options))
        const back = decoded(from, translateAnswer(there, from, options))
        const idsOf = ({ choices }: Candidate) => choices.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id))
        const given = idsOf(start)
        const ids = idsOf(back)
        const areTaken = given.every((id, at) => isCallId(id) && given.indexOf(id) === at)
        expect(ids).toEqual(areTaken ? given : [...new Set(ids)].filter(isCallId))
        const named = (choice: Candidate['choices'][number]) => ({
          ...choice,
          toolCalls: choice.toolCalls.map((call, at) => ({ ...call, id: ids[at] })),
        })
        expect(back.choices).toEqual(start.choices.map(named))
      }),
      { numRuns: 300 },
    )
  })
})

function decoded(dialect: DialectName, result: ReturnType<typeof translateAnswer>): Candidate {
  if (!result.ok) throw new Error(result.refused.join('; '))
  const answer = dialects[dialect].decodeJson(result.body)
  if (!answer.ok) throw new Error(answer.detail)
  return answer.candidate
}

describe('usage for the other dialect', () => {
  // Together at most what an answer may have.
  const count = fc.nat(20_000_000)
  const tokens = fc.record({
    uncached: count,
    cache_write_5m: count,
    cache_write_1h: count,
    cache_read: count,
    output: count,
  })

  it('loses no token, and in the messages dialect no class either', () => {
    fc.assert(
      fc.property(tokens, classes => {
        const messages = messagesUsage()
        messages.see(messagesUsageOf(classes))
        expect(messages.tokens()).toEqual(classes)
        const { uncached, cache_write_5m, cache_write_1h, cache_read, output } = classes
        // The chat dialect has no class for writes; they are part of the prompt.
        expect(chatTokens(chatUsageOf(classes))).toEqual({
          uncached: uncached + cache_write_5m + cache_write_1h,
          cache_write_5m: 0,
          cache_write_1h: 0,
          cache_read,
          output,
        })
      }),
    )
  })
})

describe('an HTTP error for a client of the other dialect', () => {
  const error = (to: DialectName, status: number, body: unknown) => {
    const bytes = encoder.encode(typeof body === 'string' ? body : JSON.stringify(body))
    const result = translateError(to, { status, body: bytes, requestId: 't-1' })
    return { status: result.status, body: JSON.parse(decoder.decode(result.body)) }
  }
  const fromMessages = (type: string, message: string) => ({ type: 'error', error: { type, message } })

  it('keeps the message, and the status except for 529', () => {
    expect(error('chat', 529, fromMessages('overloaded_error', 'Overloaded'))).toEqual({
      status: 503,
      body: { error: { message: 'Overloaded', type: 'server_error', param: null, code: null } },
    })
    expect(
      error('messages', 429, {
        error: { message: 'Slow down', type: 'requests', param: null, code: 'rate_limit_exceeded' },
      }),
    ).toEqual({
      status: 429,
      body: { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' }, request_id: 't-1' },
    })
  })

  it('is an overflow in both', () => {
    expect(
      error('chat', 400, fromMessages('invalid_request_error', 'prompt is too long: 9 tokens')).body.error.code,
    ).toBe('context_length_exceeded')
  })

  it('has words of its own when the body has none', () => {
    expect(error('messages', 502, '<html>Bad Gateway</html>').body.error).toEqual({
      type: 'api_error',
      message: 'The upstream answered with status 502.',
    })
  })
})
