import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tryParseJson, tryParsePlain } from './json-text.ts'
import { messages } from './messages/messages.ts'

const utf8 = (text: string) => new TextEncoder().encode(text)

describe('the reader for values whose text nobody asks for', () => {
  const pieces = fc.constantFrom(
    '{"a":1,"a":2}',
    '{"__proto__":[1]}',
    '"\\ud800"',
    '-0',
    '1e400',
    '12345678901234567890',
  )
  const bodies = fc
    .tuple(fc.oneof(fc.json(), pieces), fc.option(fc.tuple(fc.nat(), fc.nat(255)), { nil: undefined }))
    .map(([text, flip]) => {
      const bytes = utf8(text)
      if (flip && bytes.length > 0) bytes[flip[0] % bytes.length] = flip[1]
      return bytes
    })

  it('reads what the careful one reads, and nothing else', () => {
    fc.assert(
      fc.property(bodies, body => {
        expect(tryParsePlain(body)).toEqual(tryParseJson(body))
      }),
      { numRuns: 2000 },
    )
    for (const body of [utf8('\ufeff{}'), Uint8Array.of(0x22, 0xff, 0x22), utf8(''), utf8('{}{}')]) {
      expect([tryParsePlain(body), tryParseJson(body)]).toEqual([undefined, undefined])
    }
  })

  it('refuses what is nested too deep, as the careful one does', () => {
    for (const level of ['[', '{"a":']) {
      const close = level === '[' ? ']' : '}'
      expect(tryParsePlain(utf8(level.repeat(400) + '0' + close.repeat(400)))).toBeDefined()
      expect(tryParsePlain(utf8(level.repeat(501) + '0' + close.repeat(501)))).toBeUndefined()
    }
    const many = `[${'[],'.repeat(600)}0]`
    expect(tryParsePlain(utf8(many))).toEqual(JSON.parse(many))
  })
})

describe('a messages answer that was not streamed', () => {
  it('keeps the text of tool input as the model wrote it', () => {
    const answer =
      '{"id":"m","content":[{"type":"tool_use","id":"t","name":"f","input":{"a": 1.0, "b":"\\u0041"}}],"stop_reason":"tool_use"}'
    expect(messages.decodeJson(utf8(answer))).toMatchObject({
      candidate: { choices: [{ toolCalls: [{ arguments: '{"a": 1.0, "b":"\\u0041"}' }] }] },
    })
  })
})
