import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { wellFormed } from './journal/well-formed.ts'
import { checkSize, MAX_RESULT_BYTES, place } from './step-output.ts'

const LIMIT = 256 * 1024
const bytesOf = (output: unknown) => utf8(canonicalize(output)).length

describe('place', () => {
  it('puts an output beside the journal exactly when its text takes more than 256 KiB', () => {
    const unit = fc.constantFrom('a', '"', '\u0001', 'é', '漢', '😀')
    const long = fc.tuple(unit, fc.integer({ min: 5_000, max: 150_000 })).map(([one, times]) => one.repeat(times))
    const output = fc.oneof(long, fc.array(long, { maxLength: 3 }), fc.dictionary(long, fc.jsonValue(), { maxKeys: 3 }))
    fc.assert(
      fc.property(output, value => {
        const { kept, blobs } = place(value, sha256)
        if (bytesOf(value) <= LIMIT) expect(kept).toBe(value)
        else expect(blobs.map(({ content }) => content.length)).toEqual([bytesOf(value)])
      }),
      { numRuns: 100 },
    )
  })
})

it('an output that looks like a reference stands beside the journal, and is not read as one', () => {
  const output = { $blob: { sha256: '0'.repeat(64), bytes: 3, mediaType: 'application/json' } }
  const { kept, blobs } = place(output, sha256)
  expect(blobs.map(({ content }) => new TextDecoder().decode(content))).toEqual([canonicalize(output)])
  expect(kept).not.toEqual(output)
})

describe('checkSize', () => {
  it('takes 8 MiB and refuses a byte more', () => {
    expect(() => checkSize('tool', 'x'.repeat(MAX_RESULT_BYTES - 2))).not.toThrow()
    expect(() => checkSize('tool', 'x'.repeat(MAX_RESULT_BYTES - 1))).toThrow('tool gave more than')
  })

  it('refuses what has no text, however small', () => {
    expect(() => checkSize('tool', { a: 1n })).toThrow(TypeError)
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(() => checkSize('tool', circle)).toThrow(TypeError)
  })
})

describe('wellFormed', () => {
  it('gives back what is so already, and repairs the rest', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(wellFormed(value)).toBe(value)
      }),
    )
    expect(wellFormed({ a: ['\ud800'], '\udc00': 1 })).toEqual({ a: ['\ufffd'], '\ufffd': 1 })
  })

  it('cuts off what is nested deeper than the readers of a journal go', () => {
    const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`)
    expect(wellFormed(nested(480))).toEqual(nested(480))
    for (const levels of [481, 100_000]) {
      const text = JSON.stringify(wellFormed({ more: nested(levels), beside: 1 }))
      expect(text).toBe(`{"more":${'['.repeat(479)}"nested deeper than 480 levels"${']'.repeat(479)},"beside":1}`)
    }
  })
})
