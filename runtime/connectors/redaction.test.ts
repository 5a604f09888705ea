import fc from 'fast-check'
import { expect, it } from 'vitest'
import { IN_FAILURES, IN_RESULTS } from '../../shared/sign/secret-forms.ts'
import { redaction } from './call.ts'
import { catalogue } from './catalogue.ts'

const secret = fc
  .string({ minLength: 8, maxLength: 60, unit: fc.constantFrom(...'abcXYZ019-_.:+/=!"\\%& ') })
  .filter(text => text.trim() === text)

it('leaves no secret in a text, plain, in JSON, in an address or in basic credentials', () => {
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (authToken, before, after) => {
      const credential = { method: 'basic', values: { authToken, accountSid: 'AC0123' } } as const
      const redact = redaction(catalogue.twilio, credential, IN_RESULTS)
      const basic = btoa(`AC0123:${authToken}`)
      for (const form of [authToken, JSON.stringify(authToken).slice(1, -1), encodeURIComponent(authToken), basic]) {
        expect(redact(`${before}${form}${after}`)).not.toContain(form)
      }
    }),
  )
})

it('leaves ordinary words of a result alone, and not even a short secret in a failure', () => {
  const credential = { method: 'token', values: { botToken: 'test' } } as const
  expect(redaction(catalogue.slack, credential, IN_RESULTS)('a test of it')).toBe('a test of it')
  expect(redaction(catalogue.slack, credential, IN_FAILURES)('a test of it')).toBe('a *** of it')
})
