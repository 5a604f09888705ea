import fc from 'fast-check'
import { expect, it } from 'vitest'
import { concealing } from './redaction.ts'

it('leaves no secret of some length in anything that a server says', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9_]{12,24}$/)
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (token, before, after) => {
      const conceal = concealing([`Bearer ${token}`])
      const said = `${before}${token}${after}`
      expect(conceal.text(said)).not.toContain(token)
      expect(JSON.stringify(conceal.json({ a: [{ [said]: said }], n: 1, none: null }))).not.toContain(token)
    }),
  )
})

it('leaves results as they are where there is nothing to hide, and short words alone', () => {
  const value = { a: [1, 'blue', null] }
  expect(concealing([]).json(value)).toBe(value)
  expect(concealing(['blue']).json(value)).toEqual(value)
  expect(concealing(['blue']).text('is blue')).toBe('is ***')
})
