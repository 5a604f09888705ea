import fc from 'fast-check'
import { expect, it } from 'vitest'
import { secretForms } from './secret-forms.ts'

const SECRET = 's3cr3t/with+signs "and" more?'
const hidden = (text: string) => secretForms(SECRET).reduce((made, form) => made.replaceAll(form, '***'), text)

it.each([
  ['as it is', SECRET],
  ['in JSON', JSON.stringify({ a: SECRET })],
  ['in an address', `https://a.example/?key=${encodeURIComponent(SECRET)}`],
  ['in hexadecimal', Buffer.from(`x${SECRET}y`).toString('hex')],
  ['in large hexadecimal', Buffer.from(SECRET).toString('hex').toUpperCase()],
  ['backwards', [...SECRET].reverse().join('')],
])('is found %s', (_, text) => {
  expect(hidden(text)).toContain('***')
  expect(hidden(text)).not.toContain('s3cr3t')
})

it('is found in base64 wherever it stands in what was encoded', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.constantFrom('base64', 'base64url'), (before, behind, encoding) => {
      const text = hidden(Buffer.from(before + SECRET + behind).toString(encoding as 'base64'))
      expect(text).toContain('***')
    }),
  )
})

it('holds no form of an encoded secret that is short enough to be part of anything', () => {
  expect(secretForms('abc')).toEqual(['abc'])
})
