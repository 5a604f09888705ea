import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { type ReadFault, readProof, readProofBytes } from './read-proof.ts'

function told(text: string): unknown {
  try {
    return { value: readProof(text) }
  } catch (error) {
    return (error as { reason: ReadFault }).reason
  }
}

describe('the strict reader', () => {
  it.each<[string, ReadFault]>([
    ['{"a":1,"a":1}', 'duplicate_member'],
    ['{"a":1,"\\u0061":2}', 'duplicate_member'],
    ['[{"b":{"__proto__":1,"__proto__":2}}]', 'duplicate_member'],
    ['{"a":1.0}', 'number_form'],
    ['[-0]', 'number_form'],
    ['[1e999]', 'number_form'],
    ['[3.5e-05]', 'number_form'],
    ['[1234567890123456811]', 'number_form'],
    ['[9007199254740993]', 'number_form'],
    ['[0.1000000000000000055]', 'number_form'],
    ['["\\ud800"]', 'lone_surrogate'],
    ['{"\\udfff":1}', 'lone_surrogate'],
    ['["\ud800"]', 'lone_surrogate'],
    ['{', 'not_json'],
    ['', 'not_json'],
    ['\ufeff{}', 'not_json'],
    ['[NaN]', 'not_json'],
  ])('refuses %s: %s', (text, reason) => {
    expect(told(text)).toBe(reason)
  })

  it('reads what says one thing, in any spacing and order, escaped or not', () => {
    for (const text of [
      '{"b":[1,1e+21,1e-7,0.000035,1234567890123456800],"a":"\\ud83d\\ude00 \\u0041"}',
      ' { "2" : null ,\n"1" : true }\r\n',
      '{"a":{"x":1},"b":{"x":1},"c":["\\"x\\":1"]}',
    ]) {
      expect(told(text)).toEqual({ value: readJson(text) })
    }
  })

  it('reads everything that the engine writes, however it is spaced', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.nat(3), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(readProof(text)).toEqual(readJson(text))
      }),
    )
  })

  it('finds a member put in twice wherever it stands', () => {
    const objects = fc.jsonValue({ maxDepth: 4 }).map(value => JSON.stringify({ top: value }))
    fc.assert(
      fc.property(objects, fc.nat(), fc.nat(2), (text, place, space) => {
        const plain = JSON.stringify(readJson(text), null, space)
        const opened = [...plain.replace(/"(?:[^"\\]|\\.)*"/g, one => '_'.repeat(one.length)).matchAll(/\{/g)]
        const at = opened[place % opened.length]!.index + 1
        const rest = plain.slice(at)
        const twice = `${plain.slice(0, at)}"t w":0,"t w":0${/^\s*\}/.test(rest) ? '' : ','}${rest}`
        expect(told(twice)).toBe('duplicate_member')
      }),
    )
  })

  it('refuses bytes that are not UTF-8', () => {
    expect(() => readProofBytes(Uint8Array.of(0x22, 0xff, 0x22))).toThrow('not UTF-8')
    expect(readProofBytes(new TextEncoder().encode('"é"'))).toBe('é')
  })
})
