import fc from 'fast-check'
import { expect, it } from 'vitest'
import { inexactNumbers, isInexact, readExactly } from './exact-numbers.ts'
import { readJson } from './read-json.ts'

it('a number is inexact that is beyond 2^53 and read as another one', () => {
  const changed = ['1234567890123456789', '-9007199254740993', '18446744073709551615', '1e400', '-1e999999999999999999']
  changed.push('1234567890123456789.0', '1.234567890123456789e18', '9007199254740992.5', `1${'0'.repeat(400)}`)
  for (const written of changed) expect(isInexact(written), written).toBe(true)
  const kept = ['0', '-0', '9007199254740991', '9007199254740992', '1234567890123456800', '1e21', '1.0E+23', '1e-400']
  kept.push('0.1', '3.141592653589793238462643', '100000000000000000000', '1.5e300', '-12.50')
  for (const written of kept) expect(isInexact(written), written).toBe(false)
})

/** The integer that the engine writes for a number. */
function shown(value: number): bigint {
  const [mantissa = '', power = '0'] = String(value).split('e+')
  const [whole = '', part = ''] = mantissa.split('.')
  return BigInt(whole + part) * 10n ** BigInt(Number(power) - part.length)
}

it('an integer is inexact where the engine writes another one for it, and nothing is that the engine wrote', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }), value => {
      expect(isInexact(String(value))).toBe(shown(Number(value)) !== value)
    }),
  )
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), value => {
      expect(isInexact(String(value))).toBe(false)
    }),
  )
})

it('a text is read as ever, with something else in the place of each such number', () => {
  fc.assert(
    fc.property(fc.json(), text => {
      expect(readExactly(text, () => expect.unreachable())).toEqual(readJson(text))
    }),
  )
  const text =
    '{"id": 1234567890123456789, "s": "1234567890123456789", "__proto__": [1, 1e400], "a/b~": {"": -9007199254740993}}'
  const read = readExactly(text, written => written)
  expect(JSON.stringify(read)).toBe(
    '{"id":"1234567890123456789","s":"1234567890123456789","__proto__":[1,"1e400"],"a/b~":{"":"-9007199254740993"}}',
  )
  expect(inexactNumbers(text)).toEqual([
    { at: '/id', written: '1234567890123456789' },
    { at: '/__proto__/1', written: '1e400' },
    { at: '/a~1b~0/', written: '-9007199254740993' },
  ])
  expect(inexactNumbers('12345678901234567890')).toEqual([{ at: '', written: '12345678901234567890' }])
  expect(() => readExactly('{"a": 12345678901234567890', written => written)).toThrow(SyntaxError)
})
