import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { canonicalize } from './jcs.ts'
import vectors from './vectors/rfc8785.json' with { type: 'json' }

const fromBits = (hex: string) => new DataView(BigUint64Array.of(BigInt('0x' + hex)).buffer).getFloat64(0, true)

describe('canonicalize (RFC 8785)', () => {
  it.each(vectors.texts)('gives the published form of $name', ({ input, expected }) => {
    expect(canonicalize(readJson(input))).toBe(expected)
  })

  it.each(vectors.numbers as [string, string][])('prints the double %s as %s', (bits, expected) => {
    expect(canonicalize(fromBits(bits))).toBe(expected)
  })

  it.each(vectors.notNumbers)('refuses the double %s', bits => {
    expect(() => canonicalize({ cost: fromBits(bits) })).toThrow(/\/cost: .* is not a JSON number/)
  })

  it('refuses half a surrogate pair in a value and in a key', () => {
    expect(() => canonicalize(['ok', '\ud800'])).toThrow('/1: the text holds half of a surrogate pair')
    expect(() => canonicalize({ '\udc00': 1 })).toThrow('surrogate')
  })

  it('refuses what JSON cannot carry', () => {
    for (const bad of [1n, Symbol('x'), () => 0, undefined, new Date()]) {
      expect(() => canonicalize([bad])).toThrow('cannot canonicalise /0')
    }
  })

  it('refuses it in what is in order as well', () => {
    expect(() => canonicalize({ a: new Array(2) })).toThrow('/a/0')
    expect(() => canonicalize({ a: 1, b: [NaN] })).toThrow('/b/0')
    expect(() => canonicalize({ a: { toJSON: () => 1 } })).toThrow('/a')
    expect(() => canonicalize({ a: 1, b: '\udc00' })).toThrow('/b')
  })

  it('sees nothing but members in an object that JSON would write as something else', () => {
    expect(canonicalize({ a: Object(5), b: Object.create({ inherited: 1 }) })).toBe('{"a":{},"b":{}}')
  })

  it('leaves undefined members out, as JSON.stringify does', () => {
    expect(canonicalize({ b: undefined, a: 1 })).toBe('{"a":1}')
  })

  it('has one form for a value, whatever the order of its keys, and that form parses to the value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
        const plain = readJson(JSON.stringify(value)) as unknown
        const form = canonicalize(plain)
        expect(readJson(form)).toEqual(plain)
        expect(canonicalize(reversed(plain))).toBe(form)
        expect(canonicalize(sorted(plain))).toBe(form)
      }),
      { numRuns: 2000 },
    )
  })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  )
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  )
}
