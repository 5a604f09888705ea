import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { errorStatusOf, type RouterErrorCase, routerErrors } from '../wire/router/error-cases.ts'
import type { DialectName } from './candidate.ts'
import { dialects } from './dialects.ts'
import { retryAfterMs } from './retry-after.ts'
import { PIECE_BYTES, textPieces, utf8Bytes } from './text-pieces.ts'
import { classifyFault, classifyStreamError } from './upstream-fault.ts'

const encoder = new TextEncoder()
const read = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const fault = (status: number, message: string, code: string | null = null) =>
  classifyFault(status, encoder.encode(JSON.stringify({ error: { type: 'invalid_request_error', message, code } })))

describe('an error of an upstream', () => {
  it.each([
    'prompt is too long: 200001 tokens > 200000 maximum',
    "This model's maximum context length is 8192 tokens.",
    'Input exceeds the context window of this model',
    'Too many tokens in the request',
    'input is too long for requested model',
    "This request exceeds the model's limit of 128000 tokens",
    'It exceeds the limit of 4096 tokens',
    'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
    'error: context_length',
  ])('is an overflow when it says: %s', message => {
    for (const status of [400, 413])
      expect(fault(status, message)).toMatchObject({ class: 'context_overflow', failover: false })
    expect(fault(500, message).class).toBe('upstream_5xx')
    expect(fault(429, message).class).toBe('rate_limited')
  })

  it('is an overflow by its code alone, and not by a byte limit', () => {
    expect(fault(400, 'x', 'context_length_exceeded').class).toBe('context_overflow')
    expect(fault(413, 'Request exceeds the maximum size')).toMatchObject({ class: 'upstream_4xx', failover: false })
  })

  it('is read where a host puts it into a list, as Gemini does', () => {
    const error = { code: 400, message: 'Unknown name "reasoning": Cannot find field.', status: 'INVALID_ARGUMENT' }
    const body = encoder.encode(JSON.stringify([{ error }]))
    expect(classifyFault(400, body).error).toMatchObject({ code: '400', message: error.message })
    expect(classifyFault(400, encoder.encode('[]')).error).toBeNull()
  })

  it.each([
    ['messages.1.content.0: Invalid `signature` in `thinking` block', 'thinking_mismatch'],
    [
      'messages.3: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified',
      'thinking_mismatch',
    ],
    ['Expected `thinking` or `redacted_thinking`, but found `text`', 'thinking_mismatch'],
    ['`max_tokens` must be greater than `thinking.budget_tokens`', 'upstream_4xx'],
    ['Thinking may not be enabled when tool_choice forces tool use.', 'upstream_4xx'],
    ['messages: roles must alternate', 'upstream_4xx'],
  ])('says whether the thinking of the history was refused: %s', (message, expected) => {
    expect(fault(400, message).class).toBe(expected)
  })

  it.each([
    [401, 'auth', false],
    [403, 'auth', false],
    [402, 'auth', false],
    [404, 'upstream_4xx', false],
    [408, 'timeout', true],
    [409, 'upstream_4xx', true],
    [425, 'upstream_4xx', true],
    [429, 'rate_limited', true],
    [500, 'upstream_5xx', true],
    [502, 'upstream_5xx', true],
    [529, 'overloaded', true],
    [498, 'overloaded', true],
    [301, 'bad_response', true],
  ])('with status %i is %s, another rung may be tried: %s', (status, expected, failover) => {
    expect(classifyFault(status, encoder.encode('<html>no</html>'))).toEqual({ class: expected, failover, error: null })
  })

  it.each<[DialectName, object, string]>([
    ['messages', { type: 'overloaded_error', code: null }, 'overloaded'],
    ['messages', { type: 'rate_limit_error', code: null }, 'rate_limited'],
    ['messages', { type: 'api_error', code: null }, 'upstream_5xx'],
    ['messages', { type: 'authentication_error', code: null }, 'auth'],
    ['messages', { type: 'a_new_error', code: null }, 'upstream_5xx'],
    ['chat', { type: 'server_error', code: null }, 'upstream_5xx'],
    ['chat', { type: 'tokens', code: 'rate_limit_exceeded' }, 'rate_limited'],
    ['chat', { type: null, code: '502' }, 'upstream_5xx'],
    ['chat', { type: null, code: 'context_length_exceeded' }, 'context_overflow'],
  ])('inside a %s stream %j is %s', (dialect, fields, expected) => {
    expect(classifyStreamError(dialect, { message: '', param: null, type: null, code: null, ...fields }).class).toBe(
      expected,
    )
  })
})

describe('the words of an error', () => {
  it.each<[string, object, string]>([
    [
      'a list of pydantic',
      { detail: [{ loc: ['body', 'n'], msg: 'Field required', type: 'missing' }] },
      'body.n: Field required',
    ],
    [
      'Cloudflare',
      { success: false, errors: [{ code: 7003, message: 'No such model' }], result: null },
      'No such model',
    ],
    ['Databricks', { error_code: 'BAD_REQUEST', message: 'No such endpoint' }, 'No such endpoint'],
    ['xAI', { code: 'x', error: 'Incorrect API key' }, 'Incorrect API key'],
  ])('are read as %s writes them', (_, body, message) => {
    expect(classifyFault(400, encoder.encode(JSON.stringify(body))).error?.message).toBe(message)
  })
})

describe('a quota of Google or OpenRouter', () => {
  const refused = (quotaId: string, retryDelay: string) =>
    classifyFault(
      429,
      encoder.encode(
        JSON.stringify([
          {
            error: {
              code: 429,
              message: 'You exceeded your current quota.',
              status: 'RESOURCE_EXHAUSTED',
              details: [
                { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] },
                { '@type': 'type.googleapis.com/google.rpc.Help', links: [] },
                { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
              ],
            },
          },
        ]),
      ),
    ).error

  it('says when it comes back, after the headers', () => {
    const error = refused('GenerateRequestsPerMinutePerProjectPerModel-FreeTier', '34.074824224s')
    const now = new Date()
    expect(retryAfterMs(() => null, now, error)).toBe(34_075)
    expect(retryAfterMs(name => (name === 'retry-after' ? '7' : null), now, error)).toBe(7000)
    expect(error).not.toHaveProperty('isOfDay')
    expect(retryAfterMs(() => null, now, refused('x', 'soon'))).toBeUndefined()
  })

  it('is one of a day by its name alone', () => {
    expect(refused('GenerateRequestsPerDayPerProjectPerModel-FreeTier', '18s')).toMatchObject({ isOfDay: true })
    const message =
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day'
    const ofRouter = { error: { message, code: 429, metadata: { headers: { 'X-RateLimit-Remaining': '0' } } } }
    expect(classifyFault(429, encoder.encode(JSON.stringify(ofRouter))).error).toMatchObject({ isOfDay: true })
  })
})

describe('retry-after', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  const wait = (headers: Record<string, string>) => retryAfterMs(name => headers[name], now)

  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '3600' }, 3_600_000],
    [{ 'retry-after': '3601' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '2026' }, 2_026_000],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:30 GMT' }, undefined],
    [{ 'retry-after': 'Thu, 01 Jan 2026 02:00:00 GMT' }, undefined],
    [{ 'retry-after': 'Fri, 02 Jan 2026 09:00:30 GMT', date: 'Fri, 02 Jan 2026 09:00:00 GMT' }, 30_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 09:00:30 GMT', date: 'Wed, 31 Dec 2025 09:00:00 GMT' }, 30_000],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT', date: 'today' }, 30_000],
    [{ 'retry-after': '7', 'retry-after-ms': '250' }, 250],
    [{ 'retry-after': '7', 'retry-after-ms': '99999999' }, undefined],
  ])('of %j is %s ms', (headers, expected) => {
    expect(wait(headers)).toBe(expected)
  })
})

describe('an error of the router', () => {
  it.each(Object.keys(routerErrors) as RouterErrorCase[])('of kind %s has the shape of each dialect', kind => {
    const { messages: messagesType, chat: chatType, code } = routerErrors[kind]
    const messages = dialects.messages.routerError(kind, 'Say why.', 't-1')
    expect(messages.status).toBe(errorStatusOf(kind, true))
    expect(readJson(read(messages.body))).toEqual({
      type: 'error',
      error: { type: messagesType, message: 'Say why.' },
      request_id: 't-1',
    })
    expect(messages.headers).toContainEqual(['request-id', 't-1'])
    const chat = dialects.chat.routerError(kind, 'Say why.', 't-1')
    expect(readJson(read(chat.body))).toEqual({ error: { message: 'Say why.', type: chatType, param: null, code } })
    expect(chat.headers.some(([name]) => name === 'retry-after')).toBe(kind === 'overloaded')
  })

  it('inside a stream is one frame on one line', () => {
    expect(read(dialects.messages.routerErrorEvent('upstream', 'a\nb', 't-1'))).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"a\\nb"},"request_id":"t-1"}\n\n',
    )
    expect(read(dialects.chat.routerErrorEvent('timeout_total', 'late', 't-1'))).toBe(
      'data: {"error":{"message":"late","type":"timeout","param":null,"code":"router_timeout"}}\n\n',
    )
  })

  it('of the Responses API says it to clients of each of its events', () => {
    const [error, failed, rest] = read(dialects.responses.routerErrorEvent('gate_failed', 'no', 't-1')).split('\n\n')
    const said = { code: 'gate_failed', message: 'no', param: null }
    expect(error?.split('\ndata: ')[0]).toBe('event: error')
    expect(readJson(error!.split('\ndata: ')[1]!)).toEqual({
      type: 'error',
      ...said,
      error: { type: 'invalid_request_error', ...said },
      sequence_number: 0,
    })
    expect(failed?.split('\ndata: ')[0]).toBe('event: response.failed')
    expect(readJson(failed!.split('\ndata: ')[1]!)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'invalid_prompt', message: 'no' } },
    })
    expect(rest).toBe('')
  })

  it.each([
    ['budget', 'insufficient_quota'],
    ['upstream', 'server_error'],
    ['broken_off', 'server_error'],
  ] as const)('of the Responses API fails a response for %s as %s', (kind, code) => {
    expect(read(dialects.responses.routerErrorEvent(kind, 'no', 't-1'))).toContain(`"error":{"code":"${code}"`)
  })
})

describe('pieces of a text', () => {
  it('are within the limit, end between code points and make up the text', () => {
    const text = fc.string({ unit: 'binary', maxLength: 200 })
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 40 }), (whole, limit) => {
        const pieces = textPieces(whole, limit)
        expect(pieces.join('')).toBe(whole)
        for (const piece of pieces) {
          expect(encoder.encode(piece).length).toBeLessThanOrEqual(limit)
          expect(piece.isWellFormed() || !whole.isWellFormed()).toBe(true)
        }
        expect(utf8Bytes(whole)).toBe(encoder.encode(whole).length)
      }),
    )
    expect(textPieces('')).toEqual([])
    expect(textPieces('x'.repeat(PIECE_BYTES + 1)).map(piece => piece.length)).toEqual([PIECE_BYTES, 1])
  })
})
