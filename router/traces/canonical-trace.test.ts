import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../../shared/json/read-json.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { GENESIS, recordHash } from '../../shared/sign/record-chain.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { sealableText, traceText } from './canonical-trace.ts'
import { sampleTrace, sealedLine } from './testing/records.ts'

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 20 }),
  fc.constant('\ud800x\0'),
)
const anyName = fc.stringMatching(/^[ !#-[\]-~]{1,12}$/)
const anyJson = fc.letrec(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    anyText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
    fc.array(
      tie('value').filter(value => value !== undefined),
      { maxLength: 4 },
    ),
    fc.dictionary(anyName, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
})).value

/** The same record with every text made sealable, the plain way. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return sealableText(value)
  if (Array.isArray(value)) return value.map(cleaned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cleaned(member)]))
}

describe('the canonical text of a trace', () => {
  it('is RFC 8785 of the record with sealable text, whatever the record holds', () => {
    fc.assert(
      fc.property(fc.dictionary(anyName, anyJson, { maxKeys: 8, noNullPrototype: true }), fc.nat(), (members, seq) => {
        fc.pre(!['seq', 'hash', 'prev_hash'].some(name => Object.hasOwn(members, name)))
        const record = { ...sampleTrace(), ...members } as unknown as UnsealedTrace
        const previous = { seq, hash: 'a'.repeat(64) }
        const { body, hash, seq: own } = sealedLine(traceText(record), previous, sha256)
        const expected = { ...(cleaned(record) as object), seq: seq + 1, prev_hash: previous.hash }
        expect(own).toBe(seq + 1)
        expect(hash).toBe(recordHash(expected))
        expect(body).toBe(canonicalize({ ...expected, hash }))
      }),
      { numRuns: 300 },
    )
  })

  it('is that of a real record, first of its chain', () => {
    const record = sampleTrace()
    const { body, hash } = sealedLine(traceText(record), undefined, sha256)
    expect(body).toBe(canonicalize({ ...record, seq: 0, prev_hash: GENESIS, hash }))
    expect(recordHash(readJson(body) as object)).toBe(hash)
  })

  it('refuses a number that JSON cannot hold', () => {
    expect(() => traceText(sampleTrace({ final: { wall_ms: Number.NaN } }))).toThrow('NaN')
  })
})

describe('sealable text', () => {
  it('has no lone surrogate, no NUL and at most 512 units, and is left alone when it already is so', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 600 }), text => {
        const out = sealableText(text)
        expect(out.isWellFormed()).toBe(true)
        expect(out).not.toContain('\0')
        expect(out.length).toBeLessThanOrEqual(512)
        expect(sealableText(out)).toBe(out)
        if (text.isWellFormed() && !text.includes('\0') && text.length <= 512) expect(out).toBe(text)
      }),
    )
    expect(sealableText('x'.repeat(511) + '😀')).toBe('x'.repeat(511) + '\ufffd')
  })
})
