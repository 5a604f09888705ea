import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonText } from './json-text.ts'

it('says every value as JSON does, without a character that a terminal obeys', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
      const said = jsonText([value, text], 2)
      expect(JSON.parse(said)).toEqual(JSON.parse(JSON.stringify([value, text])))
      expect(said).not.toMatch(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
    }),
  )
  expect(jsonText('\u009b31m\u202e')).toBe('"\\u009b31m\\u202e"')
})
