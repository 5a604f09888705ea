import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { parseJson, tryParseJson, tryParsePlain, writeJson } from './json-text.ts'
import { asArray, asObject } from './json-value.ts'
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
      for (const levels of [undefined, 3]) {
        expect(tryParseJson(utf8(level.repeat(500) + '0' + close.repeat(500)), levels)).toBeDefined()
        expect(tryParseJson(utf8(level.repeat(501) + '0' + close.repeat(501)), levels)).toBeUndefined()
      }
    }
    const many = `[${'[],'.repeat(600)}0]`
    expect(tryParsePlain(utf8(many))).toEqual(readJson(many))
  })
})

describe('the text of a part', () => {
  it.each([
    ['{"a": { "n": 1.0 } , "b":[ 1e0 ]}', '{ "n": 1.0 }'],
    // The second of two is the value; the pieces of the first belong to none.
    ['{"a":[ {"x": [ 9.0 ]} ],"a":{"x": [ 1.0 ]}}', '{"x": [ 1.0 ]}'],
    ['{"a":{"x": 9.0},"a":[ {"x": 1.0} ]}', '[ {"x": 1.0} ]'],
    ['{"\\u0061":{"\u00e9": {"n": 1.00}}}', '{"\u00e9": {"n": 1.00}}'],
    ['{"b":"}]","a":[[ ],{ }]}', '[[ ],{ }]'],
    [' {"a" : {"__proto__": [ 1 ]}} ', '{"__proto__": [ 1 ]}'],
  ])('is the text that it was read from: %s', (body, text) => {
    const part = asObject(parseJson(utf8(body))).a
    expect(writeJson(part ?? null)).toBe(text)
    expect(part).toEqual(readJson(text))
  })

  it('is known at every level', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const inner = JSON.stringify(value, null, 1)
        const whole = asObject(asArray(parseJson(`[{"v" :\n ${inner} }]`))[0])
        expect(writeJson(whole)).toBe(`{"v" :\n ${inner} }`)
        expect(writeJson(whole.v ?? null)).toBe(typeof value === 'object' ? inner : JSON.stringify(value))
      }),
    )
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
