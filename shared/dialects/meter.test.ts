import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SseFrame, sseReader } from '../http/sse-read.ts'
import type { DialectName, Tokens } from './candidate.ts'
import { chatTokens } from './chat/usage.ts'
import type { MeterReading } from './dialect.ts'
import { dialects } from './dialects.ts'
import { atLeast, writtenBytes } from './estimate.ts'
import { JsonSyntaxError } from './json-scan.ts'
import { messagesUsage } from './messages/usage.ts'
import { chatAnswer, messagesAnswer } from './testing/answers.ts'

const encoder = new TextEncoder()
const json = (value: unknown) => encoder.encode(JSON.stringify(value))
const tokens = (uncached: number, w5: number, w1h: number, read: number, output: number): Tokens => ({
  uncached,
  cache_write_5m: w5,
  cache_write_1h: w1h,
  cache_read: read,
  output,
})

function frames(pieces: readonly Uint8Array[]): SseFrame[] {
  const reader = sseReader({ maxFrameBytes: 1 << 20 })
  return pieces.flatMap(piece => reader.push(piece))
}

function metered(name: DialectName, pieces: readonly Uint8Array[]): MeterReading {
  const meter = dialects[name].meter()
  for (const frame of frames(pieces)) meter.push(frame)
  return meter.reading()
}

const event = (data: { type: string }) => encoder.encode(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
const chunk = (data: unknown) => encoder.encode(`data: ${JSON.stringify(data)}\n\n`)

describe('token classes of the messages dialect', () => {
  const of = (usage: object) => {
    const seen = messagesUsage()
    seen.see(JSON.parse(JSON.stringify(usage)))
    return seen.tokens()
  }

  it.each([
    [
      'the vector of the price table',
      {
        input_tokens: 100,
        cache_creation_input_tokens: 3000,
        cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
        cache_read_input_tokens: 10_000,
        output_tokens: 50,
      },
      tokens(100, 1000, 2000, 10_000, 50),
    ],
    [
      'a total without a split',
      { input_tokens: 1, cache_creation_input_tokens: 7, output_tokens: 2 },
      tokens(1, 7, 0, 0, 2),
    ],
    [
      'a split without a total',
      { cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 } },
      tokens(0, 3, 4, 0, 0),
    ],
    [
      'a split that disagrees with the total',
      {
        cache_creation_input_tokens: 10,
        cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 4 },
      },
      tokens(0, 6, 4, 0, 0),
    ],
    [
      'a total below its own split',
      { cache_creation_input_tokens: 2, cache_creation: { ephemeral_1h_input_tokens: 4 } },
      tokens(0, 0, 4, 0, 0),
    ],
    [
      'a compaction, which the totals leave out, beside turns of the model, which they hold',
      {
        input_tokens: 100,
        output_tokens: 50,
        iterations: [
          {
            type: 'compaction',
            input_tokens: 7,
            cache_read_input_tokens: 1000,
            cache_creation_input_tokens: 30,
            cache_creation: { ephemeral_1h_input_tokens: 10 },
            output_tokens: 9,
          },
          { type: 'compaction', input_tokens: 1, output_tokens: 1 },
          { type: 'message', input_tokens: 100, output_tokens: 50 },
        ],
      },
      tokens(108, 20, 10, 1000, 60),
    ],
    [
      'fields that are not counts',
      { input_tokens: -1, output_tokens: '5', cache_read_input_tokens: 1.5, cache_creation: null },
      null,
    ],
    ['more tokens than an answer can have', { input_tokens: 2, output_tokens: 1e14 }, null],
    [
      'compactions of more tokens than an answer can have',
      { input_tokens: 2, iterations: Array.from({ length: 20 }, () => ({ type: 'compaction', input_tokens: 9e6 })) },
      null,
    ],
  ])('are right for %s', (_label, usage, expected) => {
    expect(of(usage)).toEqual(expected)
  })

  it('count a write to a cache that lives longer than an hour as the longest there is', () => {
    const cache_creation = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4, ephemeral_24h_input_tokens: 5 }
    expect(of({ cache_creation_input_tokens: 12, cache_creation })).toEqual(tokens(0, 3, 9, 0, 0))
  })

  it('take the largest value of each field over a stream, never the sum', () => {
    const reading = metered('messages', [
      event({
        type: 'message_start',
        message: { id: 'msg_1', model: 'm', usage: { input_tokens: 100, output_tokens: 1 } },
      } as never),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'héllo' } } as never),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 40, input_tokens: 90 },
      } as never),
      event({ type: 'message_delta', delta: {}, usage: { output_tokens: 50, cache_read_input_tokens: 5 } } as never),
      event({ type: 'message_stop' }),
    ])
    expect(reading).toMatchObject({
      id: 'msg_1',
      model: 'm',
      finish: 'end_turn',
      textBytes: 6,
      complete: true,
      error: null,
    })
    expect(reading.tokens).toEqual(tokens(100, 0, 0, 5, 50))
  })

  it('count each compaction of a stream once', () => {
    const compaction = { type: 'compaction', input_tokens: 7, output_tokens: 9 }
    const delta = (iterations: object[]) =>
      event({ type: 'message_delta', delta: {}, usage: { output_tokens: 50, iterations } } as never)
    const start = event({ type: 'message_start', message: { usage: { input_tokens: 100, output_tokens: 1 } } } as never)
    const { tokens: counted } = metered('messages', [start, delta([compaction]), delta([compaction, compaction])])
    expect(counted).toEqual(tokens(114, 0, 0, 0, 68))
  })

  it('belong to the model that a provider fell back to', () => {
    const fallback = { type: 'fallback', from: { model: 'm' }, to: { model: 'n' } }
    const { model } = metered('messages', [
      event({ type: 'message_start', message: { model: 'm', usage: {} } } as never),
      event({ type: 'content_block_start', index: 0, content_block: fallback } as never),
    ])
    expect(model).toBe('n')
  })
})

describe('what is billed beside the tokens of a messages answer', () => {
  const read = (usage: object, model = 'm') =>
    dialects.messages.readBody(json({ id: 'a', model, content: [], stop_reason: 'end_turn', usage }))
  const used = { input_tokens: 100, output_tokens: 50 }

  it('is its mode, its region and its searches', () => {
    const usage = { ...used, speed: 'fast', inference_geo: 'us', server_tool_use: { web_search_requests: 2 } }
    expect(read(usage).billing).toMatchObject({ rates: ['fast', 'us'], webSearches: 2, fallback: null, others: [] })
    expect(
      read({ ...used, speed: 'standard', inference_geo: 'global', service_tier: 'priority' }).billing.rates,
    ).toEqual([])
  })

  it('is an advisor, which is another model and which the totals leave out', () => {
    const advisor = { type: 'advisor_message', model: 'big', input_tokens: 300, output_tokens: 7 }
    const reading = read({ ...used, iterations: [{ type: 'message', model: 'm', ...used }, advisor, advisor] })
    expect(reading.tokens).toEqual(tokens(100, 0, 0, 0, 50))
    const one = { model: 'big', tokens: tokens(300, 0, 0, 0, 7) }
    expect(reading.billing.others).toEqual([one, one])
    expect(reading.model).toBe('m')
    expect(read({ ...used, iterations: Array(5000).fill(advisor) }).billing.others).toHaveLength(1000)
  })

  const declined = { type: 'message', model: 'm', input_tokens: 90, output_tokens: 5 }
  const served = { type: 'fallback_message', model: 'n', input_tokens: 100, output_tokens: 50 }
  it.each([
    ['of the model that answered alone', used],
    ['of both models', { input_tokens: 190, output_tokens: 55 }],
  ])('is a model that declined, beside the one that answered, where the totals are %s', (_, totals) => {
    const reading = read({ ...totals, iterations: [declined, served] })
    expect(reading.model).toBe('n')
    expect(reading.tokens).toEqual(tokens(100, 0, 0, 0, 50))
    expect(reading.billing).toMatchObject({
      fallback: 'n',
      others: [{ model: 'm', tokens: tokens(90, 0, 0, 0, 5) }],
    })
  })

  it('never loses a token that the provider counted', () => {
    const count = fc.nat(1000)
    const iteration = fc.record({
      type: fc.constantFrom('message', 'fallback_message', 'compaction', 'advisor_message', 'new_kind'),
      model: fc.constantFrom('m', 'n', 'o', null),
      input_tokens: count,
      output_tokens: count,
    })
    fc.assert(
      fc.property(count, count, fc.array(iteration, { maxLength: 5 }), (input_tokens, output_tokens, iterations) => {
        const { tokens: own, billing } = read({ input_tokens, output_tokens, iterations })
        const all = [own ?? tokens(0, 0, 0, 0, 0), ...billing.others.map(other => other.tokens)]
        expect(all.reduce((sum, one) => sum + one.uncached, 0)).toBeGreaterThanOrEqual(input_tokens)
        expect(all.reduce((sum, one) => sum + one.output, 0)).toBeGreaterThanOrEqual(output_tokens)
      }),
    )
  })
})

describe('what OpenAI bills beside the tokens', () => {
  const chat = (answer: object) => dialects.chat.readBody(json({ id: 'c', choices: [], ...answer })).billing
  const response = (answer: object) => dialects.responses.readBody(json({ status: 'completed', ...answer })).billing

  it('is the tier that served the answer', () => {
    for (const of of [chat, response]) {
      expect(of({ service_tier: 'priority' }).rates).toEqual(['priority'])
      expect(of({ service_tier: 'fast' }).rates).toEqual(['priority'])
      expect(of({ service_tier: 'ultrafast' }).rates).toEqual(['ultrafast'])
      expect(of({ service_tier: 'flex' }).rates).toEqual(['flex'])
      for (const service_tier of ['default', 'auto', 'scale', null, 7]) expect(of({ service_tier }).rates).toEqual([])
    }
  })

  it('is sound, in and out', () => {
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 30,
      prompt_tokens_details: { audio_tokens: 15 },
      completion_tokens_details: { audio_tokens: 25 },
    }
    expect(chat({ usage })).toMatchObject({ audioInput: 15, audioOutput: 25 })
    expect(metered('chat', [chunk({ choices: [], usage })]).billing).toMatchObject({ audioInput: 15, audioOutput: 25 })
  })

  it('is a search: those of the provider that it bills, and the one of a model that always searches', () => {
    const search = { type: 'web_search_call', action: { type: 'search' } }
    const page = { type: 'web_search_call', action: { type: 'open_page' } }
    expect(response({ output: [search, page, search] }).webSearches).toBe(2)
    expect(response({ output: [search], tool_usage: { web_search: { num_requests: 3 } } }).webSearches).toBe(3)
    expect(chat({ model: 'gpt-5-search-api' }).webSearches).toBe(1)
    expect(chat({ model: 'gpt-5' }).webSearches).toBe(0)
  })

  it('is a search in files, and the machine that its code ran on, by its memory', () => {
    const search = { type: 'file_search_call', status: 'completed' }
    expect(response({ output: [search, search] }).fees).toBe(5_000_000)
    const code = (container_id: string) => ({ type: 'code_interpreter_call', container_id })
    const tools = (container: unknown) => [{ type: 'code_interpreter', container }]
    const auto = tools({ type: 'auto' })
    expect(response({ output: [code('a'), code('a')], tools: auto }).fees).toBe(30_000_000)
    expect(response({ output: [code('a'), code('b')], tools: auto }).fees).toBe(60_000_000)
    expect(response({ output: [], tools: auto }).fees).toBe(0)
    expect(response({ output: [code('a')], tools: tools({ type: 'auto', memory_limit: '16g' }) }).fees).toBe(
      480_000_000,
    )
    expect(response({ output: [code('a')], tools: tools({ type: 'auto', memory_limit: '1t' }) }).fees).toBe(
      1_920_000_000,
    )
    expect(response({ output: [code('a')], tools: tools('a') }).fees).toBe(0)
    const shell = { type: 'shell_call', environment: { type: 'container_reference', container_id: 'a' } }
    const tool = { type: 'shell', environment: { type: 'container_auto', memory_limit: '4g' } }
    expect(response({ output: [shell], tools: [tool] }).fees).toBe(120_000_000)
  })

  it.each([
    ['xAI', { cost_in_usd_ticks: 37_756_000 }, 3_775_600],
    ['OpenRouter', { cost: 0.95, cost_details: { upstream_inference_cost: 19 } }, 950_000_000],
    [
      'OpenRouter with a key of the caller',
      { cost: 0.05, is_byok: true, cost_details: { upstream_inference_cost: 1 } },
      1_050_000_000,
    ],
    ['Perplexity', { cost: { input_tokens_cost: 0.1, request_cost: 0.006, total_cost: 0.206 } }, 206_000_000],
    ['a host that says nothing', {}, 0],
    ['a host that says no amount', { cost: '1', cost_in_usd_ticks: -1 }, 0],
    ['a host that is not believed', { cost: 1e9 }, 0],
  ])('is what %s says that it bills', (_, said, nano) => {
    const usage = { prompt_tokens: 20, completion_tokens: 30, ...said }
    expect(chat({ usage }).stated).toBe(nano)
    expect(metered('chat', [chunk({ choices: [], usage })]).billing.stated).toBe(nano)
    expect(response({ usage: { input_tokens: 20, output_tokens: 30, ...said } }).stated).toBe(nano)
    const whole = { id: 'a', model: 'm', content: [], stop_reason: 'end_turn', usage: { input_tokens: 1, ...said } }
    expect(dialects.messages.readBody(json(whole)).billing.stated).toBe(nano)
  })

  it('is a picture, of a model that is not named', () => {
    const image_gen = { input_tokens: 4, output_tokens: 1000 }
    expect(response({ tool_usage: { image_gen } }).others).toEqual([{ model: null, tokens: tokens(4, 0, 0, 0, 1000) }])
    expect(response({ output: [{ type: 'image_generation_call' }] }).others).toHaveLength(1)
    expect(response({ tool_usage: { image_gen: { input_tokens: 0, output_tokens: 0 } } }).others).toEqual([])
  })

  it('is a write to its cache for half a day', () => {
    const details = { cached_tokens: 20, cache_write_tokens: 70 }
    const cache_write_tokens_details = { ttl_30m_tokens: 30, ttl_12h_tokens: 40 }
    const usage = {
      input_tokens: 100,
      output_tokens: 1,
      input_tokens_details: { ...details, cache_write_tokens_details },
    }
    const reading = dialects.responses.readBody(json({ status: 'completed', usage }))
    expect(reading.tokens).toEqual(tokens(10, 30, 40, 20, 1))
  })
})

describe('token classes of the chat dialect', () => {
  it.each([
    [
      'the vector of the price table',
      { prompt_tokens: 1200, completion_tokens: 50, prompt_tokens_details: { cached_tokens: 1000 } },
      tokens(200, 0, 0, 1000, 50),
    ],
    [
      'cache writes of compatible hosts',
      {
        prompt_tokens: 100,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
      },
      tokens(50, 30, 0, 20, 1),
    ],
    [
      'cached tokens beside the rest',
      { prompt_tokens: 100, completion_tokens: 2, cached_tokens: 60 },
      tokens(40, 0, 0, 60, 2),
    ],
    ['the other name for cached tokens', { prompt_tokens: 100, prompt_cache_hit_tokens: 60 }, tokens(40, 0, 0, 60, 0)],
    [
      'a cached part larger than the whole',
      { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 60 } },
      tokens(0, 0, 0, 60, 0),
    ],
    [
      'reasoning, which is part of the output',
      { prompt_tokens: 1, completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 25 } },
      tokens(1, 0, 0, 0, 30),
    ],
    [
      'reasoning of a host that counts it beside the output, as its total shows',
      {
        prompt_tokens: 100,
        completion_tokens: 30,
        total_tokens: 155,
        completion_tokens_details: { reasoning_tokens: 25 },
      },
      tokens(100, 0, 0, 0, 55),
    ],
    [
      'a total that is no more than its parts',
      { prompt_tokens: 9, completion_tokens: 3, total_tokens: 1 },
      tokens(9, 0, 0, 0, 3),
    ],
    ['an empty usage, which counts nothing', {}, null],
    ['counts below nothing', { prompt_tokens: -5, completion_tokens: -5 }, null],
    ['counts that are parts or texts', { prompt_tokens: 1.5, completion_tokens: '20' }, null],
    ['more tokens than an answer can have', { prompt_tokens: 10, completion_tokens: 1e14 }, null],
    ['a prompt that is counted beside an answer that is not', { prompt_tokens: 10, completion_tokens: -1 }, null],
  ])('are right for %s', (_label, usage, expected) => {
    expect(chatTokens(usage)).toEqual(expected)
  })

  it('come from the last usage that is not null, for hosts with running totals and for an extra chunk', () => {
    const reading = metered('chat', [
      encoder.encode(': hello\n\n'),
      chunk({ choices: [], prompt_filter_results: [] }),
      chunk({
        id: 'c1',
        model: 'm',
        choices: [{ index: 1, delta: { content: 'b' }, finish_reason: 'length' }],
        usage: { completion_tokens: 1 },
      }),
      chunk({
        id: 'c1',
        choices: [{ index: 0, delta: { content: 'é' }, finish_reason: 'stop' }],
        usage: { completion_tokens: 9, prompt_tokens: 4 },
      }),
      chunk({ id: 'c1', choices: [], usage: null }),
      encoder.encode('data: [DONE]\n\n'),
    ])
    expect(reading).toMatchObject({ id: 'c1', model: 'm', finish: 'stop', textBytes: 3, complete: true })
    expect(reading.tokens).toEqual(tokens(4, 0, 0, 0, 9))
  })

  it('count what calls of free text say', () => {
    const call = { index: 0, id: 'call_1', type: 'custom', custom: { name: 'sql', input: 'select 1' } }
    const { textBytes } = metered('chat', [chunk({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })])
    expect(textBytes).toBe(11)
  })

  it('are null when the stream carried no usage', () => {
    expect(metered('chat', [chunk({ choices: [{ index: 0, delta: { content: 'x' } }] })])).toMatchObject({
      tokens: null,
      complete: false,
    })
  })
})

describe.each([
  ['messages', messagesAnswer],
  ['chat', chatAnswer],
] as const)('a meter of the %s dialect', (name, answers) => {
  it('reads the same from a stream, from a body and from the candidate', () => {
    fc.assert(
      fc.property(answers, (answer: unknown) => {
        const decoded = dialects[name].decodeJson(json(answer))
        if (!decoded.ok) throw new Error(decoded.detail)
        const { id, model, tokens: counted, choices } = decoded.candidate
        const expected = { id, model, tokens: counted, finish: choices[0]?.finish, complete: true, error: null }
        expect(dialects[name].readBody(json(answer))).toMatchObject(expected)
        expect(metered(name, dialects[name].emit(json(answer), { includeUsage: true }))).toMatchObject(expected)
      }),
    )
  })

  it('reads the same from a long body, which is stepped over, as from a short one', () => {
    const long = ' '.repeat(65 * 1024)
    const padded = (text: string) => encoder.encode(text.replace(/^\{/, () => `{${long}`))
    fc.assert(
      fc.property(answers, fc.boolean(), fc.jsonValue(), (answer: unknown, failed, error) => {
        const text = JSON.stringify(failed ? { ...(answer as object), error } : answer)
        expect(dialects[name].readBody(padded(text))).toEqual(dialects[name].readBody(encoder.encode(text)))
      }),
    )
  })

  it('reads nothing else as JSON, long or short', () => {
    for (const bytes of [
      encoder.encode('{"id":"a",'),
      encoder.encode('[]'),
      Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d),
    ]) {
      expect(() => dialects[name].readBody(bytes)).toThrow(JsonSyntaxError)
    }
  })

  it('never throws on frames of any content', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        fc.constantFrom('message_start', 'message_delta', undefined),
        (values, type) => {
          const pieces = values.map(value =>
            chunk(type === undefined ? value : { type, message: value, delta: value, usage: value, choices: value }),
          )
          expect(metered(name, pieces).complete).toBe(false)
        },
      ),
    )
  })
})

describe('the estimate for a cut stream', () => {
  it('is the last usage seen, and never less output than the text that came', () => {
    expect(atLeast(null, 9)).toEqual(tokens(0, 0, 0, 0, 3))
    expect(atLeast(tokens(5, 0, 0, 7, 2), 40)).toEqual(tokens(5, 0, 0, 7, 10))
    expect(atLeast(tokens(5, 0, 0, 7, 20), 40)).toEqual(tokens(5, 0, 0, 7, 20))
  })

  it('counts everything the model wrote', () => {
    const decoded = dialects.chat.decodeJson(
      json({
        choices: [
          {
            message: {
              content: 'é',
              refusal: 'no',
              tool_calls: [{ id: 'i', function: { name: 'f', arguments: '{}' } }],
            },
            finish_reason: 'stop',
          },
        ],
      }),
    )
    expect(decoded.ok && writtenBytes(decoded.candidate)).toBe(7)
  })
})
