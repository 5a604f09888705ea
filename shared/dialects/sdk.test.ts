import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sseReader } from '../http/sse-read.ts'
import type { Decoded, DialectName } from './candidate.ts'
import { dialects } from './dialects.ts'
import { CUT_SHORT } from './messages/answer.ts'
import { chatAnswer, concat, cutAt, messagesAnswer, responsesAnswer } from './testing/answers.ts'
import { translateAnswer } from './translate/answer.ts'

const encoder = new TextEncoder()
const json = (value: unknown) => encoder.encode(JSON.stringify(value))

/** What the loopback server sends next, in these pieces. */
let served: readonly Uint8Array[] = []
const server = createServer(async (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const piece of served) if (!response.write(piece)) await new Promise(drained => response.once('drain', drained))
  response.end()
})
let base = ''
beforeAll(async () => {
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => new Promise(closed => server.close(closed)))

/** The same bytes without a socket, for the many runs of a property. */
const inProcess = async () =>
  new Response(
    new ReadableStream({
      start(stream) {
        for (const piece of served) if (piece.length > 0) stream.enqueue(piece)
        stream.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )

type Client = (pieces: readonly Uint8Array[], socket?: boolean) => Promise<unknown>
const clients: Record<DialectName, Client> = {
  async messages(pieces, socket = false) {
    served = pieces
    const options = { apiKey: 'x', maxRetries: 0, logLevel: 'off' } as const
    const client = new Anthropic(socket ? { ...options, baseURL: base } : { ...options, fetch: inProcess })
    const stream = client.beta.messages.stream({
      model: 'm',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'x' }],
    })
    return plain(await stream.finalMessage())
  },
  async chat(pieces, socket = false) {
    served = pieces
    const options = { apiKey: 'x', maxRetries: 0, logLevel: 'off' } as const
    const client = new OpenAI(socket ? { ...options, baseURL: `${base}/v1` } : { ...options, fetch: inProcess })
    const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
    return plain(await stream.finalChatCompletion())
  },
  async responses(pieces, socket = false) {
    served = pieces
    const options = { apiKey: 'x', maxRetries: 0, logLevel: 'off' } as const
    const client = new OpenAI(socket ? { ...options, baseURL: `${base}/v1` } : { ...options, fetch: inProcess })
    const stream = client.responses.stream({ model: 'm', input: 'x' })
    return plain(await stream.finalResponse())
  },
}

/** What a client built, as JSON, without the members it adds for its own parsing. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member) =>
      ['parsed', 'parsed_output', 'parsed_arguments', '_request_id', 'output_text', 'output_parsed'].includes(key)
        ? undefined
        : member,
    ),
  )
}

function decode(name: DialectName, pieces: readonly Uint8Array[]): Decoded {
  const reader = sseReader({ maxFrameBytes: 1 << 24 })
  const accumulator = dialects[name].accumulator()
  for (const piece of pieces) for (const frame of reader.push(piece)) accumulator.push(frame)
  return accumulator.finish(reader.rest())
}

function decodedJson(name: DialectName, pieces: readonly Uint8Array[]): unknown {
  const decoded = decode(name, pieces)
  if (!decoded.ok) throw new Error(`${decoded.reason}: ${decoded.detail}`)
  return JSON.parse(new TextDecoder().decode(decoded.body))
}

const emitted = (name: DialectName, answer: unknown) => dialects[name].emit(json(answer), { includeUsage: true })
const chunkings = {
  'single bytes': (bytes: Uint8Array) => Array.from(bytes, b => Uint8Array.of(b)),
  'seven bytes': (bytes: Uint8Array) =>
    Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.slice(i * 7, i * 7 + 7)),
  'one piece': (bytes: Uint8Array) => [bytes],
}

const usage = {
  input_tokens: 100,
  cache_creation_input_tokens: 3000,
  cache_read_input_tokens: 10_000,
  cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
  output_tokens: 50,
}
const richMessage = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'a-model',
  content: [
    { type: 'thinking', thinking: 'let me see… 漢字😀', signature: 'sig==' },
    { type: 'redacted_thinking', data: 'opaque' },
    { type: 'text', text: `long ${'x😀'.repeat(3000)}` },
    { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1, b: [2, 'é'] } },
    { type: 'tool_use', id: 'toolu_2', name: 'now', input: {} },
    { type: 'made_up_block', whole: { nested: [1, 2] } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage,
}
const odds = (token: string) => ({ token, logprob: -0.1, bytes: null, top_logprobs: [] })
const richCompletion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'a-model',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'héllo 😀',
        refusal: null,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a": 1.0}' } },
          { id: 'call_2', type: 'function', function: { name: 'now', arguments: '' } },
        ],
      },
      logprobs: { content: [odds('héllo'), odds(' 😀')], refusal: null },
      finish_reason: 'tool_calls',
    },
    {
      index: 1,
      message: { role: 'assistant', content: null, refusal: 'I will not.' },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 1200,
    completion_tokens: 50,
    total_tokens: 1250,
    prompt_tokens_details: { cached_tokens: 1000 },
  },
  system_fingerprint: 'fp_1',
}
const richResponse = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_700_000_000,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'a-model',
  output: [
    {
      id: 'rs_1',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'hm… 漢字😀' }],
      encrypted_content: 'x==',
    },
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: `long ${'x😀'.repeat(3000)}`, annotations: [], logprobs: [] },
        { type: 'refusal', refusal: 'I will not.' },
      ],
    },
    { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'add', arguments: '{"a": 1.0}', status: 'completed' },
    { id: 'ctc_1', type: 'custom_tool_call', call_id: 'call_2', name: 'patch', input: '*** é', status: 'completed' },
    { id: 'x_1', type: 'made_up_item', whole: { nested: [1, 2] } },
  ],
  parallel_tool_calls: true,
  usage: {
    input_tokens: 1200,
    input_tokens_details: { cached_tokens: 1000 },
    output_tokens: 50,
    output_tokens_details: { reasoning_tokens: 10 },
    total_tokens: 1250,
  },
}
const rich: Record<DialectName, unknown> = {
  messages: richMessage,
  chat: richCompletion,
  responses: richResponse,
}

describe.each(['messages', 'chat', 'responses'] as const)(
  'the official client of the %s dialect, over a socket',
  name => {
    it.each(Object.entries(chunkings))('rebuilds a synthesised answer sent in %s', async (_label, chunk) => {
      const pieces = chunk(concat([dialects[name].keepAlive, ...emitted(name, rich[name])]))
      expect(await clients[name](pieces, true)).toEqual(rich[name])
      expect(decodedJson(name, pieces)).toEqual(rich[name])
    })

    it('throws on a cut stream, which the accumulator calls bad too', async () => {
      const frames = emitted(name, rich[name])
      // Chat: the finish of a choice is needed, the end mark is not.
      const cut = frames.slice(0, name === 'chat' ? -3 : -1)
      // The client of the Responses API leaves it to its caller to look at the status.
      if (name === 'responses') expect(await clients[name](cut, true)).toMatchObject({ status: 'in_progress' })
      else await expect(clients[name](cut, true)).rejects.toThrow()
      expect(decode(name, cut)).toMatchObject({ ok: false, reason: 'truncated' })
    })

    it('throws on an error event in the middle and at the end', async () => {
      const frames = emitted(name, rich[name])
      const event = dialects[name].routerErrorEvent('upstream', 'The upstream closed the connection.', 'trace-1')
      for (const at of [2, frames.length - 1]) {
        const stream = [...frames.slice(0, at), event]
        await expect(clients[name](stream, true)).rejects.toThrow('closed the connection')
        expect(decode(name, stream)).toMatchObject({ ok: false, reason: 'upstream_error' })
      }
    })
  },
)

describe('what official clients refuse', () => {
  it('a second message_start', async () => {
    const frames = emitted('messages', richMessage)
    const stream = [frames[0]!, ...frames]
    await expect(clients.messages(stream, true)).rejects.toThrow()
    expect(decode('messages', stream)).toMatchObject({ ok: false, reason: 'out_of_order' })
  })

  it('a choice without a finish, even before the end mark', async () => {
    const frames = emitted('chat', richCompletion).filter(
      frame => !new TextDecoder().decode(frame).includes('"finish_reason":"stop"'),
    )
    await expect(clients.chat(frames, true)).rejects.toThrow('finish_reason')
    expect(decode('chat', frames)).toMatchObject({ ok: false, reason: 'truncated' })
  })
})

describe.each([
  ['messages', messagesAnswer],
  ['chat', chatAnswer],
  ['responses', responsesAnswer],
] as const)('any answer of the %s dialect', (name, answers) => {
  const cuts = fc.array(fc.nat(5000), { maxLength: 12 })

  it('comes back from its own stream the same, through the client and through the accumulator', async () => {
    await fc.assert(
      fc.asyncProperty(answers, cuts, async (answer: unknown, points) => {
        const pieces = cutAt(concat(emitted(name, answer)), points)
        const sent = plain(answer)
        expect(await clients[name](pieces)).toEqual(sent)
        expect(decodedJson(name, pieces)).toEqual(sent)
      }),
      { numRuns: 200 },
    )
  })

  it('gives the same candidate streamed or not', () => {
    fc.assert(
      fc.property(answers, (answer: unknown) => {
        const whole = dialects[name].decodeJson(json(answer))
        const streamed = decode(name, emitted(name, answer))
        expect(whole.ok && streamed.ok && streamed.candidate).toEqual(whole.ok && whole.candidate)
      }),
      { numRuns: 200 },
    )
  })

  it('is never accepted from a damaged stream unless the client builds the very same message', async () => {
    const damage = fc.record({
      kind: fc.constantFrom('drop', 'double', 'swap', 'cut', 'flip', 'cr', 'crlf'),
      at: fc.nat(1000),
      // Bytes that break a frame or its JSON. Another letter in a name only makes another name, which no reader can tell.
      byte: fc.constantFrom(0x00, 0x0a, 0x0d, 0x22, 0x80, 0xc3, 0xff),
    })
    let accepted = 0
    let refused = 0
    await fc.assert(
      fc.asyncProperty(answers, damage, cuts, async (answer: unknown, { kind, at, byte }, points) => {
        const stream = concat(damaged(emitted(name, answer), kind, at, byte))
        const decoded = decode(name, cutAt(stream, points))
        if (!decoded.ok || !decoded.replayable) {
          refused += 1
          return
        }
        accepted += 1
        const built = await clients[name](cutAt(stream, points))
        expect(comparable(JSON.parse(new TextDecoder().decode(decoded.body)))).toEqual(comparable(built))
      }),
      { numRuns: 400 },
    )
    expect(accepted).toBeGreaterThan(50)
    expect(refused).toBeGreaterThan(50)
  })
})

const oneChoice = chatAnswer.map(answer => ({ ...answer, choices: answer.choices.slice(0, 1) }))
describe.each([
  ['messages', 'chat', messagesAnswer],
  ['chat', 'messages', oneChoice],
  ['messages', 'responses', messagesAnswer],
  ['chat', 'responses', oneChoice],
] as const)('an answer of a %s upstream for a client of the %s dialect', (from, to, answers) => {
  it('is rebuilt by that client from the stream we make of it', async () => {
    let passed = 0
    await fc.assert(
      fc.asyncProperty(answers, fc.array(fc.nat(5000), { maxLength: 8 }), async (answer: unknown, points) => {
        const decoded = dialects[from].decodeJson(json(answer))
        if (!decoded.ok) throw new Error(decoded.detail)
        const translated = translateAnswer(decoded.candidate, to, { traceId: 'a-b', created: 1 })
        if (!translated.ok) return
        passed += 1
        const frames = dialects[to].emit(translated.body, { includeUsage: true })
        expect(await clients[to](cutAt(concat(frames), points))).toEqual(
          JSON.parse(new TextDecoder().decode(translated.body)),
        )
      }),
      { numRuns: 200 },
    )
    expect(passed).toBeGreaterThan(20)
  })
})

/**
 * Without what is kept better than the chat client keeps it: pieces of reasoning are joined and a usage is not lost to a null.
 * And without tool inputs that a token limit cut, which the messages client completes by guessing.
 */
function comparable(answer: unknown): unknown {
  const cut = CUT_SHORT.has((answer as { stop_reason?: string }).stop_reason ?? '')
  const left = (key: string) =>
    (answer as { choices?: unknown }).choices !== undefined
      ? ['usage', 'reasoning_content', 'annotations'].includes(key)
      : cut && key === 'input'
  return JSON.parse(JSON.stringify(answer, (key, member) => (left(key) ? undefined : member)))
}

function damaged(frames: readonly Uint8Array[], kind: string, at: number, byte: number): Uint8Array[] {
  const i = at % frames.length
  const frame = frames[i]!
  const before = frames.slice(0, i)
  const after = frames.slice(i + 1)
  const place = at % frame.length
  switch (kind) {
    case 'drop':
      return [...before, ...after]
    case 'double':
      return [...before, frame, frame, ...after]
    case 'swap':
      return [...before, ...after.slice(0, 1), frame, ...after.slice(1)]
    case 'cut':
      return [...before, frame.slice(0, place)]
    case 'flip':
      return [...before, Uint8Array.from(frame, (b, at) => (at === place ? byte : b)), ...after]
    default:
      return frames.map(one =>
        encoder.encode(new TextDecoder().decode(one).replaceAll('\n', kind === 'cr' ? '\r' : '\r\n')),
      )
  }
}
