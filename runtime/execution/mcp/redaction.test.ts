import fc from 'fast-check'
import { expect, it } from 'vitest'
import { redactValues } from './fault.ts'

it('leaves no secret of some length in anything that a server says', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9_]{12,24}$/)
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (token, before, after) => {
      const redact = redactValues([`Bearer ${token}`])
      const said = `${before}${token}${after}`
      expect(redact.text(said)).not.toContain(token)
      expect(JSON.stringify(redact.json({ a: [{ [said]: said }], n: 1, none: null }))).not.toContain(token)
    }),
  )
})

it('leaves results as they are where there is nothing to hide, and short words alone', () => {
  const value = { a: [1, 'blue', null] }
  expect(redactValues([]).json(value)).toBe(value)
  expect(redactValues(['blue']).json(value)).toEqual(value)
  expect(redactValues(['blue']).text('is blue')).toBe('is ***')
})
