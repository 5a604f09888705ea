import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { cursor, JsonSyntaxError, MAX_DEPTH, skipSpace, skipValue } from './json-scan.ts'
import { parseJson, writeJson } from './json-text.ts'
import { spelling } from './testing/spelling.ts'

const encoder = new TextEncoder()

/** Where the scanner stopped, undefined when it took the whole body for one JSON value. */
function fault(bytes: Uint8Array): number | undefined {
  const c = cursor(bytes)
  try {
    skipValue(c)
    skipSpace(c)
    return c.at === bytes.length ? undefined : c.at
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.at
    throw error
  }
}

function isJson(bytes: Uint8Array): boolean {
  try {
    readJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}

describe('the scanner', () => {
  it('accepts every spelling of JSON', () => {
    fc.assert(
      fc.property(spelling(fc.jsonValue({ stringUnit: 'binary' })), ({ text }) => {
        expect(fault(encoder.encode(text))).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  it('finds any byte that may not stand in a string as it is, at any place of it', () => {
    const differing: string[] = []
    for (let length = 1; length <= 20; length += 1) {
      for (let at = 0; at < length; at += 1) {
        for (let byte = 0; byte < 256; byte += 1) {
          const bytes = encoder.encode(`"${'a'.repeat(length)}"`)
          bytes[1 + at] = byte
          if ((fault(bytes) === undefined) !== isJson(bytes)) differing.push(`${byte} at ${at} of ${length}`)
        }
      }
    }
    expect(differing).toEqual([])
  })

  it('agrees with JSON.parse about texts that are damaged in one byte', () => {
    fc.assert(
      fc.property(
        spelling(fc.jsonValue()),
        fc.nat(),
        fc.nat(255),
        fc.constantFrom('set', 'drop', 'cut'),
        ({ text }, at, byte, how) => {
          const bytes = encoder.encode(text)
          const i = at % bytes.length
          const damaged =
            how === 'set'
              ? bytes.map((b, j) => (j === i ? byte : b))
              : how === 'drop'
                ? bytes.filter((_, j) => j !== i)
                : bytes.slice(0, i)
          expect(fault(damaged) === undefined).toBe(isJson(damaged))
        },
      ),
      { numRuns: 1500 },
    )
  })

  it.each([
    '',
    ' ',
    '01',
    '1.',
    '.5',
    '+1',
    '1e',
    '-',
    'nul',
    'truex',
    '"\\x"',
    '"\\u12g4"',
    '"\t"',
    '[1,]',
    '{"a":1,}',
    '{"a" 1}',
    '{a:1}',
    '[1 2]',
    ']',
    '\ufeff{}',
    '{}{}',
  ])('refuses %j', text => {
    expect(fault(encoder.encode(text))).not.toBeUndefined()
  })

  it.each([
    [[0xff]],
    [[0xc0, 0x80]],
    [[0xe0, 0x80, 0x80]],
    [[0xed, 0xa0, 0x80]],
    [[0xf0, 0x80, 0x80, 0x80]],
    [[0xf4, 0x90, 0x80, 0x80]],
    [[0xe6, 0xbc]],
  ])('refuses the bytes %j inside a string', sequence => {
    expect(fault(Uint8Array.from([0x22, ...sequence, 0x22]))).toBe(1)
  })

  it('reads deep nesting without a deep call stack and stops at its bound', () => {
    const nested = (levels: number) => encoder.encode('['.repeat(levels) + ']'.repeat(levels))
    expect(fault(nested(MAX_DEPTH))).toBeUndefined()
    expect(fault(nested(MAX_DEPTH + 1))).toBe(MAX_DEPTH)
  })
})

describe('parseJson', () => {
  it('gives the values of JSON.parse and writes the text back as it was', () => {
    fc.assert(
      fc.property(spelling(fc.jsonValue({ stringUnit: 'binary' })), ({ text }) => {
        const value = parseJson(text)
        expect(value).toEqual(readJson(text))
        if (typeof value === 'object' && value !== null) expect(writeJson(value)).toBe(text.trim())
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the text of parts that are put into a new value', () => {
    const { input } = parseJson('{"input": {"n": 1.0, "big": 12345678901234567890, "s": "\\u00e9"} }') as {
      input: object
    }
    expect(writeJson({ type: 'tool_use', input: input as never, note: 'é' })).toBe(
      '{"type":"tool_use","input":{"n": 1.0, "big": 12345678901234567890, "s": "\\u00e9"},"note":"é"}',
    )
  })

  it('makes a member of a key named __proto__', () => {
    const value = parseJson('{"__proto__":{"a":1}}')
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })
})
