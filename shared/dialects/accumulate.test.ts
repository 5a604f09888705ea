import { describe, expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { sseReader } from '../http/sse-read.ts'
import type { Decoded, DialectName } from './candidate.ts'
import { dialects } from './dialects.ts'

const encoder = new TextEncoder()

function decode(name: DialectName, stream: string | Uint8Array, expectedChoices = 1): Decoded {
  const reader = sseReader({ maxFrameBytes: 1 << 20 })
  const accumulator = dialects[name].accumulator({ expectedChoices })
  for (const frame of reader.push(typeof stream === 'string' ? encoder.encode(stream) : stream)) accumulator.push(frame)
  return accumulator.finish(reader.rest())
}
const event = (data: { type: string; [key: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const body = (decoded: Decoded) => (decoded.ok ? JSON.parse(new TextDecoder().decode(decoded.body)) : decoded)

it('takes time by its length: pieces of calls without an index', () => {
  const frames = Array.from({ length: 60 }, (_, frame) => {
    const tool_calls = Array.from({ length: 1000 }, (_, at) => ({
      id: `c${frame}-${at}`,
      function: { name: 'f', arguments: '{}' },
    }))
    return `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { tool_calls } }] })}\n\n`
  })
  const end = 'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
  const from = performance.now()
  const decoded = decode('chat', frames.join('') + end)
  expect(decoded.ok && decoded.candidate.choices[0]?.toolCalls).toHaveLength(60_000)
  expectWithin(performance.now() - from, 3000)
})

it('takes time by its length: logprobs of many tokens', () => {
  const logprobs = { content: [{ token: 'y', logprob: -1 }] }
  const frame = `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { content: 'y' }, logprobs }] })}\n\n`
  const end = 'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  const from = performance.now()
  const { choices } = body(decode('chat', frame.repeat(60_000) + end))
  expect(choices[0].logprobs.content).toHaveLength(60_000)
  expectWithin(performance.now() - from, 3000)
})

it.each([
  ['messages', 'delta', (name: string) => ({ type: 'message_delta', delta: { [name]: 1 }, usage: {} })],
  ['chat', 'chunk', (name: string) => ({ id: 'x', [name]: 1, choices: [] })],
  ['chat', 'choice', (name: string) => ({ choices: [{ index: 0, [name]: 1, delta: {} }] })],
  ['chat', 'delta', (name: string) => ({ choices: [{ index: 0, delta: { [name]: 1 } }] })],
  ['chat', 'logprobs', (name: string) => ({ choices: [{ index: 0, delta: {}, logprobs: { [name]: 1 } }] })],
  ['chat', 'call', (name: string) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, [name]: 1 }] } }] })],
] as const)('of the %s dialect stops at a %s with ever new names', (name, _, frame) => {
  const message = { id: 'm', model: 'x', role: 'assistant', content: [], usage: { input_tokens: 5, output_tokens: 1 } }
  const start = name === 'messages' ? event({ type: 'message_start', message }) : ''
  const lines = Array.from({ length: 8000 }, (_, n) => {
    const data = frame(`name-${n}`)
    return `${'type' in data ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`
  })
  const from = performance.now()
  const decoded = decode(name, start + lines.join(''))
  expect(decoded).toMatchObject({ ok: false, detail: 'an object has more than 200 members' })
  expectWithin(performance.now() - from, 1000)
})

describe('a messages stream', () => {
  const start = event({
    type: 'message_start',
    message: { id: 'm', model: 'x', role: 'assistant', content: [], usage: { input_tokens: 5, output_tokens: 1 } },
  })
  const open = (block: object, index = 0) => event({ type: 'content_block_start', index, content_block: block })
  const delta = (part: object, index = 0) => event({ type: 'content_block_delta', index, delta: part })
  const close = (index = 0) => event({ type: 'content_block_stop', index })
  const end = (stop_reason: string | null = 'end_turn') =>
    event({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } }) +
    event({ type: 'message_stop' })
  const tool = { type: 'tool_use', id: 't', name: 'f', input: {} }
  const input = (partial_json: string) => delta({ type: 'input_json_delta', partial_json })

  it('keeps the text of tool input as the model wrote it', () => {
    const decoded = decode(
      'messages',
      start + open(tool) + input('') + input('{"a": 1') + input('.0}') + close() + end('tool_use'),
    )
    expect(decoded).toMatchObject({
      ok: true,
      replayable: true,
      candidate: { choices: [{ toolCalls: [{ id: 't', name: 'f', arguments: '{"a": 1.0}' }] }] },
    })
    expect(decoded.ok && new TextDecoder().decode(decoded.body)).toContain('"input":{"a": 1.0}')
    expect(decoded.ok && decoded.candidate.tokens).toMatchObject({ uncached: 5, output: 9 })
  })

  it('reads a call without arguments', () => {
    for (const pieces of ['', input('')]) {
      const decoded = decode('messages', start + open(tool) + pieces + close() + end('tool_use'))
      expect(decoded).toMatchObject({ ok: true, candidate: { choices: [{ toolCalls: [{ arguments: '{}' }] }] } })
    }
  })

  it('takes input that a token limit cut, and no other that does not parse', () => {
    const cut = open(tool) + input('{"a": "lo') + close()
    expect(decode('messages', start + cut + end('max_tokens'))).toMatchObject({
      ok: true,
      candidate: { choices: [{ toolCalls: [{ arguments: '{"a": "lo' }], finish: 'max_tokens' }] },
    })
    expect(decode('messages', start + cut + end('tool_use'))).toMatchObject({ ok: false, reason: 'bad_tool_json' })
    expect(decode('messages', start + open(tool) + input('[1]') + close() + end('tool_use'))).toMatchObject({
      ok: false,
      reason: 'bad_tool_json',
    })
    expect(decode('messages', start + open(tool) + input('{}}') + close() + end('max_tokens'))).toMatchObject({
      ok: false,
      reason: 'bad_tool_json',
    })
  })

  it('passes over pings, comments, unknown events and unknown deltas', () => {
    const noise = `: hi\n\n${event({ type: 'ping' })}${event({ type: 'event_of_next_year', x: 1 })}`
    const text =
      open({ type: 'text', text: '' }) +
      delta({ type: 'delta_of_next_year' }) +
      noise +
      delta({ type: 'text_delta', text: 'hi' }) +
      close()
    expect(body(decode('messages', noise + start + text + end() + noise))).toMatchObject({
      content: [{ type: 'text', text: 'hi' }],
    })
  })

  it('is put together without event lines, but not to be replayed so', () => {
    const bare = (start + open({ type: 'text', text: 'x' }) + close() + end()).replace(/^event: .*\n/gm, '')
    expect(decode('messages', bare)).toMatchObject({
      ok: true,
      replayable: false,
      candidate: { choices: [{ text: 'x' }] },
    })
  })

  const text = open({ type: 'text', text: '' })
  it('takes what the beta of the official client takes from a stream', () => {
    const compaction = { type: 'compaction', content: null, encrypted_content: null }
    const fallback = { type: 'fallback', from: { model: 'x' }, to: { model: 'y' } }
    const iterations = [{ type: 'compaction', input_tokens: 1, output_tokens: 2 }]
    const last = event({
      type: 'message_delta',
      delta: { stop_reason: 'compaction', stop_sequence: null },
      usage: { output_tokens: 9, iterations, fallback_credit: null },
      context_management: { applied_edits: [] },
      input_transformations: null,
    })
    const whole = { type: 'compaction_delta', content: 'So far.', encrypted_content: 'c2Vh' }
    const blocks = open(compaction) + delta(whole) + close() + open(fallback, 1) + close(1)
    const decoded = decode('messages', start + blocks + last + event({ type: 'message_stop' }))
    expect(decoded).toMatchObject({ ok: true, replayable: true, candidate: { model: 'y' } })
    expect(body(decoded)).toEqual({
      id: 'm',
      model: 'y',
      role: 'assistant',
      content: [{ ...compaction, content: 'So far.', encrypted_content: 'c2Vh' }, fallback],
      stop_reason: 'compaction',
      stop_sequence: null,
      usage: { input_tokens: 5, output_tokens: 9, iterations },
      context_management: { applied_edits: [] },
    })
  })

  it.each<[string, string, string]>([
    ['nothing', '', 'empty'],
    ['only pings', event({ type: 'ping' }), 'empty'],
    ['no message_stop', start + text + close(), 'truncated'],
    ['an end without a reason', start + end(null), 'truncated'],
    ['an end in the middle of its last frame', start + end().trimEnd(), 'truncated'],
    ['a block before the start', text + start + end(), 'out_of_order'],
    ['two starts', start + start + end(), 'out_of_order'],
    ['an index left out', start + open({ type: 'text', text: '' }, 1), 'out_of_order'],
    ['a block inside another', start + text + open({ type: 'text', text: '' }, 1), 'out_of_order'],
    ['a delta for another block', start + text + delta({ type: 'text_delta', text: 'x' }, 1), 'out_of_order'],
    ['a delta after its block', start + text + close() + delta({ type: 'text_delta', text: 'x' }), 'out_of_order'],
    ['an end inside a block', start + text + end(), 'out_of_order'],
    ['data after the end', start + end() + text, 'out_of_order'],
    ['text in a tool', start + open(tool) + delta({ type: 'text_delta', text: 'x' }), 'bad_frame'],
    ['a delta that is not text', start + text + delta({ type: 'text_delta', text: 5 }), 'bad_frame'],
    ['an event line that lies', start.replace('event: message_start', 'event: message_stop'), 'bad_frame'],
    ['HTML', 'event: message_start\ndata: <html>\n\n', 'not_json'],
    [
      'an error after the finish',
      start + end() + event({ type: 'error', error: { type: 'api_error', message: 'm' } }),
      'upstream_error',
    ],
  ])('is bad with %s', (_label, stream, reason) => {
    expect(decode('messages', stream)).toMatchObject({ ok: false, reason })
  })

  it('is bad where a code point is cut', () => {
    const bytes = encoder.encode(start + text + delta({ type: 'text_delta', text: 'é' }) + close() + end())
    const i = bytes.indexOf(0xc3)
    expect(decode('messages', Uint8Array.from([...bytes.slice(0, i), ...bytes.slice(i + 1)]))).toMatchObject({
      ok: false,
      reason: 'not_utf8',
    })
  })
})

describe('a chat stream', () => {
  const chunk = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices, ...more })}\n\n`
  const part = (delta: object, index = 0) => chunk([{ index, delta, finish_reason: null }])
  const stop = (finish_reason = 'stop', index = 0) => chunk([{ index, delta: {}, finish_reason }])
  const first = part({ role: 'assistant', content: '' })
  const done = 'data: [DONE]\n\n'
  const call = (piece: object) => part({ tool_calls: [piece] })
  const calls = (decoded: Decoded) => (decoded.ok ? decoded.candidate.choices[0]?.toolCalls : decoded)

  it('joins the pieces of tool calls by their index and keeps the text', () => {
    const decoded = decode(
      'chat',
      part({ role: 'assistant', content: null }) +
        call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }) +
        call({ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{"x"' } }) +
        call({ index: 0, id: 'a', function: { arguments: '{"y": 1.0}' } }) +
        call({ index: 1, function: { arguments: ':}' } }) +
        stop('tool_calls') +
        done,
    )
    expect(calls(decoded)).toEqual([
      { id: 'a', name: 'f', arguments: '{"y": 1.0}' },
      { id: 'b', name: 'g', arguments: '{"x":}' },
    ])
    expect(decoded).toMatchObject({ replayable: true })
    expect(body(decoded).choices[0].message.content).toBeNull()
  })

  it('closes gaps in the indexes and puts in indexes that are missing, and says that clients could not', () => {
    const whole = (index: number | undefined, id: string) =>
      call({ index, id, type: 'function', function: { name: 'f', arguments: id } })
    const gap = decode('chat', first + whole(1, 'a') + whole(4, 'b') + stop('tool_calls') + done)
    expect(calls(gap)).toMatchObject([{ id: 'a' }, { id: 'b' }])
    const missing = decode(
      'chat',
      first +
        whole(undefined, 'a') +
        call({ function: { arguments: '+' } }) +
        whole(undefined, 'b') +
        call({ id: 'a', function: { arguments: '!' } }) +
        stop('tool_calls') +
        done,
    )
    expect(calls(missing)).toMatchObject([
      { id: 'a', arguments: 'a+!' },
      { id: 'b', arguments: 'b' },
    ])
    expect([gap, missing]).toMatchObject([{ replayable: false }, { replayable: false }])
  })

  it.each([
    ['b', 'c'],
    ['', ''],
  ])('keeps whole calls apart that a host gives one index, as Gemini does, with the ids %j and %j', (second, third) => {
    const whole = (id: string, name: string, args: string) =>
      call({ index: 0, id, type: 'function', function: { name, arguments: args } })
    const decoded = decode(
      'chat',
      first + whole('a', 'f', '{"q":"one"}') + whole(second, 'f', '{}') + whole(third, 'g', '{"q":{}}') + stop() + done,
    )
    expect(calls(decoded)).toMatchObject([
      { id: 'a', name: 'f', arguments: '{"q":"one"}' },
      { name: 'f', arguments: '{}' },
      { name: 'g', arguments: '{"q":{}}' },
    ])
    expect(new Set(decoded.ok ? decoded.candidate.choices[0]!.toolCalls.map(({ id }) => id) : []).size).toBe(3)
    expect(decoded).toMatchObject({ replayable: false })
  })

  it('joins the pieces of a call whose host gives each a new id', () => {
    const piece = (at: number, text: string) =>
      call({ index: 0, id: `r${at}`, type: 'function', function: { name: 'f', arguments: text } })
    const pieces = ['{"a":{"b":1}', ',"c":', '{}', '}'].map((text, at) => piece(at, text)).join('')
    expect(calls(decode('chat', first + pieces + stop() + done))).toMatchObject([{ arguments: '{"a":{"b":1},"c":{}}' }])
  })

  it('keeps choices apart, with a refusal in its own field', () => {
    const stream =
      chunk([], { prompt_filter_results: [] }) +
      part({ role: 'assistant', content: 'a' }, 1) +
      first +
      part({ content: 'b' }, 1) +
      part({ refusal: 'no' }) +
      stop('stop', 1) +
      stop() +
      done
    expect(decode('chat', stream, 2)).toMatchObject({
      ok: true,
      candidate: {
        choices: [
          { index: 0, text: '', refusal: 'no' },
          { index: 1, text: 'ab', refusal: null },
        ],
      },
    })
  })

  it('joins reasoning, whatever the host calls it', () => {
    const stream =
      first +
      part({ reasoning_content: 'a' }) +
      part({ reasoning_content: null }) +
      part({ reasoning_content: 'b' }) +
      stop() +
      done
    expect(decode('chat', stream)).toMatchObject({
      candidate: { choices: [{ thinking: 'ab', extras: ['reasoning_content'] }] },
    })
  })

  it('is whole without the end mark when every choice has its finish', () => {
    expect(decode('chat', first + stop())).toMatchObject({ ok: true })
    expect(decode('chat', first + stop(), 2)).toMatchObject({ ok: false, reason: 'truncated' })
    expect(decode('chat', `${first + stop()}data: {"id":"c","choices":[],"us`)).toMatchObject({
      ok: false,
      reason: 'truncated',
    })
  })

  it('ignores what follows the end mark', () => {
    expect(decode('chat', `${first + stop() + done}data: rubbish\n\n`)).toMatchObject({
      ok: true,
      candidate: { choices: [{ text: '' }] },
    })
  })

  it('reads a stream without roles, but not to be replayed so', () => {
    expect(decode('chat', part({ content: 'x' }) + stop() + done)).toMatchObject({ ok: true, replayable: false })
  })

  it('takes the old way of a function call', () => {
    const stream =
      first +
      part({ function_call: { name: 'f', arguments: '{' } }) +
      part({ function_call: { arguments: '}' } }) +
      stop('function_call')
    expect(calls(decode('chat', stream))).toEqual([{ id: '', name: 'f', arguments: '{}' }])
  })

  it.each<[string, string, string]>([
    ['nothing', '', 'empty'],
    ['only the end mark', done, 'empty'],
    ['only usage', chunk([], { usage: {} }) + done, 'empty'],
    ['no finish', first + done, 'truncated'],
    ['a choice left out', part({ role: 'assistant' }, 1) + stop('stop', 1) + done, 'bad_frame'],
    ['a choice number beyond all bounds', stop('stop', 5000), 'bad_frame'],
    ['content that is not text', part({ content: 5 }), 'bad_frame'],
    [
      'a call without a name',
      first + call({ index: 0, id: 'a', function: { arguments: '' } }) + stop('tool_calls') + done,
      'bad_frame',
    ],
    ['HTML', 'data: <html>\n\n', 'not_json'],
    ['an error object', `${first}data: {"error":{"message":"m","type":"server_error"}}\n\n`, 'upstream_error'],
    ['an error event', `${first}event: error\ndata: {"message":"m"}\n\n`, 'upstream_error'],
    ['a finish of error', first + stop('error') + done, 'upstream_error'],
    [
      'a finish for want of room',
      part({ content: 'ha' }) + stop('insufficient_system_resource') + done,
      'upstream_error',
    ],
    ['an error after the finish', `${first + stop()}data: {"error":"m"}\n\n`, 'upstream_error'],
  ])('is bad with %s', (_label, stream, reason) => {
    expect(decode('chat', stream)).toMatchObject({ ok: false, reason })
  })
})

describe('answers of compatible hosts', () => {
  const encode = (value: unknown) => encoder.encode(JSON.stringify(value))
  const whole = (choice: object) => dialects.chat.decodeJson(encode({ choices: [{ index: 0, ...choice }] }))
  const message = { role: 'assistant', content: 'ha' }
  const piece = (delta: object, rest: object = {}) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`
  const end = (finish_reason: string, rest: object = {}) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: {}, finish_reason, ...rest }] })}\n\ndata: [DONE]\n\n`

  it('are errors where they end with one, whole or not, by the error in the choice', () => {
    const error = { code: 429, message: 'Rate limited by the provider.' }
    for (const got of [
      whole({ message, finish_reason: 'error', error }),
      decode('chat', piece(message) + end('error', { error })),
    ]) {
      expect(got).toMatchObject({ ok: false, error: { message: error.message, code: '429' } })
      const failed = got as Extract<Decoded, { ok: false }>
      expect(dialects.chat.classifyStreamError(failed.error!)).toMatchObject({ class: 'rate_limited', failover: true })
    }
    const noRoom = whole({ message, finish_reason: 'insufficient_system_resource' })
    expect(noRoom).toMatchObject({ ok: false, reason: 'upstream_error' })
  })

  it('call tools with an object for arguments, or without any', () => {
    const call = (args: unknown) => ({ id: 'a', type: 'function', function: { name: 'f', arguments: args } })
    for (const [given, due] of [
      [{ city: 'Ulm', n: [1] }, '{"city":"Ulm","n":[1]}'],
      [null, ''],
      [undefined, ''],
    ]) {
      const tool_calls = [call(given)]
      const streamed = decode(
        'chat',
        piece({ role: 'assistant', tool_calls: [{ index: 0, ...tool_calls[0] }] }) + end('tool_calls'),
      )
      const answered = whole({ message: { role: 'assistant', content: null, tool_calls }, finish_reason: 'tool_calls' })
      for (const got of [streamed, answered])
        expect(got).toMatchObject({
          ok: true,
          candidate: { choices: [{ toolCalls: [{ name: 'f', arguments: due }] }] },
        })
      // Clients join the pieces as texts.
      if (typeof given === 'object' && given !== null) expect(streamed).toMatchObject({ replayable: false })
    }
  })

  it('count what Groq counts beside its own id', () => {
    const usage = { prompt_tokens: 9, completion_tokens: 3 }
    expect(decode('chat', piece(message) + piece({}, { x_groq: { id: 'r', usage } }) + end('stop'))).toMatchObject({
      ok: true,
      candidate: { tokens: { uncached: 9, output: 3 } },
    })
  })

  it.each([
    ['eos', 'complete'],
    ['tool_use', 'tool'],
    ['model_length', 'length'],
    ['abort', 'unknown'],
  ])('finish with %s, which is %s', (finish, kind) => {
    expect(dialects.chat.finishKind(finish)).toBe(kind)
  })
})

describe.each(['messages', 'chat'] as const)('a %s body that is not an answer', name => {
  it.each<[string, string]>([
    ['', 'empty'],
    ['<html>', 'not_json'],
    ['{"content":[', 'not_json'],
    ['[]', 'not_an_answer'],
    ['{}', 'not_an_answer'],
    ['{"type":"error","error":{"type":"overloaded_error","message":"m"}}', 'upstream_error'],
    ['{"error":{"message":"m"}}', 'upstream_error'],
    ['{"content":[],"choices":[{"message":{"content":"x"},"finish_reason":null}]}', 'truncated'],
    ['{"content":[5],"choices":[5]}', 'bad_frame'],
  ])('%s', (text, reason) => {
    expect(dialects[name].decodeJson(encoder.encode(text))).toMatchObject({ ok: false, reason })
  })
})

describe('content that is a list, as reasoning models of Mistral send it', () => {
  const thought = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] })
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', model: 'magistral-small', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const stream =
    chunk({ role: 'assistant', content: '' }) +
    chunk({ content: [thought('one ')] }) +
    chunk({ content: [thought('two')] }) +
    chunk({ content: [{ type: 'text', text: 'It ' }] }) +
    chunk({ content: 'is 4.' }) +
    chunk({ content: [{ type: 'reference', reference_ids: [1] }] }) +
    chunk({ content: '' }, 'stop') +
    'data: [DONE]\n\n'
  const content = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'one two' }] },
    { type: 'text', text: 'It is 4.' },
    { type: 'reference', reference_ids: [1] },
  ]
  const read = [{ text: 'It is 4.', thinking: 'one two', extras: ['content.thinking', 'content.reference'] }]

  it('is put together from its pieces', () => {
    const decoded = decode('chat', stream)
    expect(body(decoded).choices[0].message.content).toEqual(content)
    expect(decoded).toMatchObject({ ok: true, replayable: true, candidate: { choices: read } })
  })

  it('is read where it came whole, and can be sent on as a stream', () => {
    const whole = encoder.encode(
      JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }),
    )
    expect(dialects.chat.decodeJson(whole)).toMatchObject({ ok: true, candidate: { choices: read } })
    const again = dialects.chat.emit(whole, { includeUsage: false }).map(frame => new TextDecoder().decode(frame))
    expect(body(decode('chat', again.join(''))).choices[0].message.content).toEqual(content)
  })

  it('counts for an answer that was cut off', () => {
    const meter = dialects.chat.meter()
    for (const frame of sseReader({ maxFrameBytes: 1 << 20 }).push(encoder.encode(stream))) meter.push(frame)
    expect(meter.reading().textBytes).toBe('one twoIt is 4.'.length)
  })

  it('is no answer where a part of it is none', () => {
    expect(decode('chat', chunk({ content: ['x'] }))).toMatchObject({ ok: false, reason: 'bad_frame' })
    expect(decode('chat', chunk({ content: 5 }))).toMatchObject({ ok: false, reason: 'bad_frame' })
  })
})
