import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sha256Hex } from './sha256.ts'

const expected = (before: Uint8Array, text: string) => createHash('sha256').update(before).update(text).digest('hex')

test('a text of any length gives the hash of its bytes, behind whatever stands before it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.string({ unit: 'binary' }), (before, text) => {
      expect(sha256Hex(text, undefined, before)).toBe(expected(before, text.toWellFormed()))
      expect(sha256Hex(text)).toBe(expected(new Uint8Array(0), text.toWellFormed()))
    }),
    { numRuns: 500 },
  )
})

test.each([21_834, 21_835, 21_845, 21_846, 65_504, 65_536, 65_537])(
  '%d characters, or two or three for each',
  length => {
    for (const unit of ['x', 'é', '€', '😀', 'x😀']) {
      const before = new Uint8Array(32).fill(7)
      expect(sha256Hex(unit.repeat(length), undefined, before)).toBe(expected(before, unit.repeat(length)))
      expect(sha256Hex(unit.repeat(length))).toBe(expected(new Uint8Array(0), unit.repeat(length)))
    }
  },
)

test('a shorter text after a longer one takes nothing of it', () => {
  sha256Hex('longer than the next')
  expect(sha256Hex('short')).toBe(expected(new Uint8Array(0), 'short'))
})
