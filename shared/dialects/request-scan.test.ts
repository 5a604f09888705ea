import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { spliceModel } from '../../router/enforce/upstream-request.ts'
import { readJson } from '../json/read-json.ts'
import { dialects } from './dialects.ts'
import type { Span } from './json-scan.ts'
import type { RequestFacts } from './request-facts.ts'
import { space, spelling, write, writeString } from './testing/spelling.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

function facts(dialect: 'messages' | 'chat', body: unknown): RequestFacts {
  const scan = dialects[dialect].scan(encoder.encode(typeof body === 'string' ? body : JSON.stringify(body)))
  if (!scan.ok) throw new Error(scan.message)
  return scan.facts
}

const key = fc.constantFrom('model', 'mod', 'Model', 'models', 'stream', 'x', '"model":"no"', 'n', 'é')
const value = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.record({ model: fc.constant('nested') }),
)

/** Objects as text, with duplicate keys, `model` among them at least once and a string the last time. */
const bodies = fc
  .tuple(
    fc.array(fc.tuple(key, value), { maxLength: 6 }),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.array(
      fc.tuple(
        key.filter(name => name !== 'model'),
        value,
      ),
      { maxLength: 6 },
    ),
    fc.infiniteStream(fc.nat(1000)),
  )
  .map(([before, model, after, stream]) => {
    const draw = (): number => stream.next().value ?? 0
    const members = [...before, ['model', model] as const, ...after].map(
      ([name, member]) =>
        space(draw) + writeString(name, draw) + space(draw) + ':' + space(draw) + write(member, draw) + space(draw),
    )
    return { model, text: `${space(draw)}{${members.join(',')}}${space(draw)}` }
  })

describe('the model splice', () => {
  it('changes only the bytes of the last top-level model literal, for any spelling', () => {
    fc.assert(
      fc.property(bodies, fc.string({ unit: 'binary', maxLength: 12 }), ({ text, model }, name) => {
        const body = encoder.encode(text)
        for (const dialect of ['messages', 'chat'] as const) {
          const found = facts(dialect, text).model
          expect(found?.value).toBe((readJson(text) as { model: string }).model)
          expect(found?.value.length).toBe(model.length)
          const spliced = spliceModel(body, found as Span, name)
          const tail = body.length - (found?.end ?? 0)
          expect(spliced.subarray(0, found?.start)).toEqual(body.subarray(0, found?.start))
          expect(spliced.subarray(spliced.length - tail)).toEqual(body.subarray(found?.end))
          expect(readJson(decoder.decode(spliced))).toEqual({
            ...(readJson(text) as object),
            model: readJson(JSON.stringify(name)),
          })
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('leaves a body alone that names the model already, byte for byte, and no other', () => {
    const same = encoder.encode('{"model":"a","n":1}')
    expect(spliceModel(same, facts('messages', '{"model":"a","n":1}').model as Span, 'a')).toBe(same)
    const spelled = '{"model":"\\u0061","n":1}'
    const spliced = spliceModel(encoder.encode(spelled), facts('messages', spelled).model as Span, 'a')
    expect(decoder.decode(spliced)).toBe('{"model":"a","n":1}')
  })

  it.each([
    ['{"mod\\u0065l":"a"}', 'a'],
    ['{"model":"a","model":"b"}', 'b'],
    ['{"x":{"model":"no"},"y":"\\"model\\":\\"no\\"","model":"yes"}', 'yes'],
    ['{"model":"a","mod\\u0065l" : "b"}', 'b'],
  ])('finds the model of %s', (text, model) => {
    expect(facts('chat', text).model?.value).toBe(model)
  })

  it.each(['{}', '{"model":5}', '{"model":"a","model":null}', '{"x":{"model":"a"}}'])('finds no model in %s', text => {
    expect(facts('messages', text).model).toBeNull()
  })

  it.each(['', '[]', '"model"', '{"model":"a"', '{"model":"a"}x', '{"model":"\xff'])('refuses the body %j', text => {
    expect(dialects.chat.scan(encoder.encode(text))).toMatchObject({ ok: false })
  })
})

describe('facts of a messages request', () => {
  const body = {
    model: 'm',
    max_tokens: 1e3,
    stream: true,
    system: [{ type: 'text', text: 's' }],
    tools: [{ name: 'a', input_schema: { type: 'object', properties: { type: { const: 'image' } } } }, { name: 'b' }],
    messages: [
      { role: 'assistant', content: 'hi' },
      {
        content: [
          { source: { type: 'base64', data: 'AAAA' }, type: 'image' },
          { type: 'text', text: 'image' },
        ],
        role: 'user',
      },
      { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [
              { type: 'image', source: {} },
              { type: 'document', source: {} },
            ],
          },
        ],
      },
    ],
  }

  it('are counted at any place they may stand in, and nowhere else', () => {
    const { model, system, messages, tools, firstUser, mediaBytes, settings, ...rest } = facts('messages', body)
    expect(settings.map(({ name }) => name)).toEqual(['max_tokens'])
    expect(rest).toEqual({
      stream: true,
      openTurn: 'thinking',
      includeUsage: false,
      n: 1,
      maxTokens: 1000,
      toolCount: 2,
      imageCount: 2,
      mediaCount: 3,
      documentBytes: 0,
      messageCount: 4,
      hasThinkingHistory: true,
    })
    const text = JSON.stringify(body)
    const at = (span: Span | undefined) => text.slice(span?.start, span?.end)
    expect(at(system)).toBe(JSON.stringify(body.system))
    expect(at(messages)).toBe(JSON.stringify(body.messages))
    expect(at(tools)).toBe(JSON.stringify(body.tools))
    expect(at(firstUser)).toBe(JSON.stringify(body.messages[1]))
    expect(at(model ?? undefined)).toBe('"m"')
    expect(mediaBytes).toBe('{"type":"base64","data":"AAAA"}'.length)
  })

  it('take for text what a provider reads as text, whatever stands around it', () => {
    const long = 'word '.repeat(100)
    const coded = { type: 'base64', data: 'AAAA' }
    const bytesOf = (...content: object[]) => {
      const { mediaBytes, mediaCount } = facts('messages', { messages: [{ role: 'user', content }] })
      return [mediaCount, mediaBytes]
    }
    const bytes = JSON.stringify(coded).length
    expect(bytesOf({ type: 'document', source: { type: 'text', data: long } })).toEqual([1, 0])
    expect(bytesOf({ type: 'document', source: coded, context: long, title: long })).toEqual([1, bytes])
    expect(bytesOf({ type: 'image', source: { ...coded, type: 'url', url: 'https://a.example' } })).toEqual([1, 0])
    const parts = [
      { type: 'text', text: long },
      { type: 'image', source: coded },
    ]
    expect(bytesOf({ type: 'document', source: { type: 'content', content: parts } })).toEqual([2, bytes])
    const twice = `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","type":"text","data":"${long}"}}]}]}`
    expect(facts('messages', twice).mediaBytes).toBe(0)
    const block = { type: 'image_url', text: long, image_url: { url: 'data:image/png;base64,AAAA' } }
    const chat = facts('chat', { messages: [{ role: 'user', content: [block] }] })
    expect(chat.documentBytes).toBe(0)
    const file = { file_data: 'data:application/pdf;base64,AAAA' }
    const documents = [
      facts('messages', { messages: [{ role: 'user', content: [{ type: 'document', source: coded }] }] }),
      facts('chat', { messages: [{ role: 'user', content: [{ type: 'file', file }] }] }),
    ]
    for (const { documentBytes, mediaBytes } of documents) expect(documentBytes).toBe(mediaBytes)
    expect(documents.map(({ documentBytes }) => documentBytes > 20)).toEqual([true, true])
    expect([chat.mediaCount, chat.mediaBytes]).toEqual([1, JSON.stringify(block.image_url).length])
  })

  it('of a repeated member are those of the last', () => {
    const first = { messages: [{ role: 'user', content: [{ type: 'image' }, { type: 'thinking' }] }] }
    const twice = `{"stream":true,${JSON.stringify(first).slice(1, -1)},"messages":[],"stream":false}`
    expect(facts('messages', twice)).toMatchObject({
      imageCount: 0,
      messageCount: 0,
      hasThinkingHistory: false,
      stream: false,
    })
    expect(facts('messages', twice).firstUser).toBeUndefined()
  })
})

describe('facts of a chat request', () => {
  it('read the fields of that dialect', () => {
    const body = {
      model: 'm',
      n: 2,
      max_tokens: 5,
      max_completion_tokens: 7,
      stream: true,
      stream_options: { include_usage: true },
      functions: [{ name: 'f' }],
      tools: [{ type: 'function', function: { name: 'g' } }],
      messages: [
        { role: 'system', content: 'image_url' },
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'u' } },
            { type: 'input_audio' },
            { type: 'text', text: 't' },
          ],
        },
      ],
    }
    expect(facts('chat', body)).toMatchObject({
      n: 2,
      maxTokens: 7,
      stream: true,
      includeUsage: true,
      toolCount: 2,
      imageCount: 1,
      mediaCount: 2,
      messageCount: 2,
      hasThinkingHistory: false,
    })
  })

  it('never fail on well-formed JSON of the wrong shape', () => {
    const names = fc.constantFrom(
      'model',
      'messages',
      'tools',
      'stream',
      'n',
      'max_tokens',
      'system',
      'stream_options',
      'functions',
    )
    const blocks = fc.array(fc.record({ type: fc.jsonValue(), content: fc.jsonValue(), role: fc.jsonValue() }))
    const wrong = fc.dictionary(names, fc.oneof(fc.jsonValue(), blocks, fc.array(fc.record({ content: blocks }))))
    fc.assert(
      fc.property(spelling(wrong), ({ text }) => {
        expect(dialects.chat.scan(encoder.encode(text)).ok).toBe(true)
        expect(dialects.messages.scan(encoder.encode(text)).ok).toBe(true)
      }),
    )
  })
})
