import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sseReader } from '../http/sse-read.ts'
import { readJson } from '../json/read-json.ts'
import { askForUsage, withoutUsage } from './chat/usage-request.ts'
import { withoutThinking } from './messages/strip-thinking.ts'
import { spelling } from './testing/spelling.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const textOf = (raw: Uint8Array) => new TextDecoder().decode(raw)
const parsed = (raw: Uint8Array): unknown => readJson(textOf(raw))

const text = fc.record({ type: fc.constant('text'), text: fc.constantFrom('a', '{"type":"thinking"}', 'é😀"') })
const thinking = fc.oneof(
  fc.record({ type: fc.constant('thinking'), thinking: fc.string({ maxLength: 5 }), signature: fc.constant('s==') }),
  fc.record({ type: fc.constant('redacted_thinking'), data: fc.constant('x,y]') }),
)
const turn = fc.record({
  role: fc.constantFrom('user', 'assistant'),
  content: fc.oneof(fc.constant('plain'), fc.array(fc.oneof(text, thinking), { maxLength: 4 })),
})
type Turn = { role: string; content: string | { type: string }[] }
const isThinking = ({ type }: { type: string }) => type === 'thinking' || type === 'redacted_thinking'

describe('thinking that is left out', () => {
  it('is gone from every turn, with turns that held nothing else, and all else means the same, for any spelling', () => {
    const request = fc.record({
      model: fc.constant('m'),
      messages: fc.array(turn, { maxLength: 4 }),
      max_tokens: fc.constant(5),
    })
    fc.assert(
      fc.property(spelling(request), ({ value, text: spelled }) => {
        const messages = (value.messages as Turn[])
          .filter(({ content }) => typeof content === 'string' || content.length === 0 || !content.every(isThinking))
          .map(({ role, content }) => ({
            role,
            content: typeof content === 'string' ? content : content.filter(block => !isThinking(block)),
          }))
        expect(parsed(withoutThinking(bytes(spelled)))).toEqual({ ...value, messages })
      }),
      { numRuns: 2000 },
    )
  })

  it('leaves every other byte as it was', () => {
    const body = '{ "messages" : [ {"content":[{"type":"thinking"} , {"n":1.0,"type":"text"}],"role":"a"} ], "x": 1e3 }'
    expect(textOf(withoutThinking(bytes(body)))).toBe(
      '{ "messages" : [ {"content":[{"n":1.0,"type":"text"}],"role":"a"} ], "x": 1e3 }',
    )
    for (const plain of ['{"messages":5,"model":"a"}', '{"model":"a"}', '{"messages":[3,{"content":[1,"t"]}]}'])
      expect(textOf(withoutThinking(bytes(plain)))).toBe(plain)
  })
})

describe('usage that is asked for in the place of the client', () => {
  it.each([
    ['{"model":"m","stream":true}', '{"stream_options":{"include_usage":true},"model":"m","stream":true}'],
    [' {"stream_options":null, "n":1.0}', ' {"stream_options":{"include_usage":true}, "n":1.0}'],
    ['{"stream_options":{"include_usage":false}}', '{"stream_options":{"include_usage":true}}'],
    [
      '{"stream_options":{"include_obfuscation":false}}',
      '{"stream_options":{"include_obfuscation":false,"include_usage":true}}',
    ],
    [
      '{"stream_options":{},"a":1,"stream_options":{"x":1}}',
      '{"stream_options":{},"a":1,"stream_options":{"x":1,"include_usage":true}}',
    ],
    ['{"stream_options":5}', '{"stream_options":5}'],
  ])('%s becomes %s', (before, after) => {
    expect(textOf(askForUsage(bytes(before)))).toBe(after)
  })

  it('is not seen in any frame, and every frame is as it would have been, for any place of the member', () => {
    const chunk = fc.record({
      id: fc.constant('c1'),
      choices: fc.array(fc.record({ index: fc.nat(2), delta: fc.record({ content: fc.string() }) }), { maxLength: 2 }),
      model: fc.constant('{"usage":null}'),
    })
    fc.assert(
      fc.property(chunk, fc.nat(3), fc.constantFrom(null, { prompt_tokens: 3 }), (value, at, usage) => {
        const members = Object.entries(value).map(([name, member]) => [name, JSON.stringify(member)])
        const write = (list: string[][]) => `data: {${list.map(([name, json]) => `"${name}":${json}`).join(',')}}\n\n`
        const spliced = members.toSpliced(at, 0, ['usage', JSON.stringify(usage)])
        const [frame] = sseReader({ maxFrameBytes: 100_000 }).push(bytes(write(spliced)))
        const shown = withoutUsage(frame!)
        if (usage !== null && value.choices.length === 0) expect(shown).toBeUndefined()
        else expect(textOf(shown!)).toBe(write(members))
      }),
    )
  })

  it('leaves frames that hold none as they came, byte for byte', () => {
    const frames = [
      'data: [DONE]\r\n\r\n',
      ': note\n\n',
      'data: {"choices":[]}\n\n',
      'data:{"a"\n\n',
      'event: x\ndata: 1\n\n',
    ]
    for (const raw of frames) {
      const [frame] = sseReader({ maxFrameBytes: 1000 }).push(bytes(raw.replace('\r\n\r\n', '\r\r')))
      expect(withoutUsage(frame!)).toBe(frame!.raw)
    }
  })
})
