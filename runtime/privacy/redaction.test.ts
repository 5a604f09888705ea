import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { redactionOf } from './redaction.ts'

const all = ['email', 'phone', 'card', 'iban', 'ssn', 'ip'] as const
const redact = (...redact: unknown[]) => redactionOf(manifest.parse({ privacy: { redact } }))!
const every = redact(...all)

describe('redaction by type', () => {
  it.each([
    ['email', 'write to bob.o_neill+tag@mail.example.co.uk.', 'write to [email].'],
    ['email', '<jörg@bücher.example>, a@b, @x.y, no@host', '<[email]>, a@b, @x.y, no@host'],
    ['phone', 'call +49 (0)151 2345-6789 or 0049 30 123456', 'call [phone] or [phone]'],
    ['phone', '(555) 234-5678, 555-234-5678, 030/12345678', '[phone], [phone], [phone]'],
    [
      'phone',
      'on 2026-01-02 at 03:04:05, 01.02.2026, order 123456789012, v1.2.3',
      'on 2026-01-02 at 03:04:05, 01.02.2026, order 123456789012, v1.2.3',
    ],
    ['card', 'card 4111 1111 1111 1111, 5500-0000-0000-0004 and 378282246310005', 'card [card], [card] and [card]'],
    [
      'card',
      '4111 1111 1111 1112, 1111111111111111 and 1767323045678',
      '4111 1111 1111 1112, 1111111111111111 and 1767323045678',
    ],
    ['iban', 'IBAN DE89 3704 0044 0532 0130 00, GB82WEST12345698765432', 'IBAN [iban], [iban]'],
    ['iban', 'DE88 3704 0044 0532 0130 00', 'DE88 3704 0044 0532 0130 00'],
    ['ssn', '078-05-1120, 666-05-1120, 900-05-1120', '[ssn], 666-05-1120, 900-05-1120'],
    [
      'ip',
      'from 192.0.2.17, 2001:db8::1 and ::ffff:192.0.2.1; 1.2.3.400; 12:30:45',
      'from [ip], [ip] and [ip]; 1.2.3.400; 12:30:45',
    ],
  ] as const)('%s: %s', (type, text, expected) => {
    expect(redact(type).text(text)).toBe(expected)
  })

  it('reaches every text of a value, its names, and numbers that are one', () => {
    const value = {
      'bob@example.com': ['a', { deep: 'bob@example.com' }],
      card: 4111111111111111,
      n: 42,
      no: null,
      yes: true,
    }
    expect(every.value(value)).toEqual({
      '[email]': ['a', { deep: '[email]' }],
      card: '[card]',
      n: 42,
      no: null,
      yes: true,
    })
  })

  it('changes nothing more a second time', () => {
    const piece = fc.constantFrom(
      'bob@example.com',
      '4111 1111 1111 1111',
      '+49 151 23456789',
      ' ',
      '-',
      '1',
      'x',
      '@',
      '.',
      '[',
      ']',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), parts => {
        const once = every.text(parts.join(''))
        expect(every.text(once)).toBe(once)
      }),
    )
  })

  it('takes time by the length of the text', () => {
    for (const char of ['1', 'a', '@', '1 ', ':', 'a.', '0-', 'AB12 ']) {
      const before = performance.now()
      every.text(char.repeat(200_000 / char.length))
      expect([char, performance.now() - before < 10_000]).toEqual([char, true])
    }
  })
})

it('redaction by pattern names what it took out', () => {
  const made = redact({ name: 'employee', pattern: 'EMP-\\d{4,6}' }, 'email')
  expect(made.text('EMP-12345 and EMP-1 of bob@example.com')).toBe('[employee] and EMP-1 of [email]')
})

it('redaction by pattern takes a bounded time, and passes nothing on that it had no time to search', () => {
  const text = `${'a'.repeat(300_000)} EMP-1 ${'a'.repeat(300_000)}`
  const slow = redact(...Array.from({ length: 30 }, (_, n) => ({ name: `slow${n}`, pattern: 'a{0,200}b' })))
  const before = performance.now()
  expect(slow.value({ text, more: [text, 'short'] })).toEqual({ text: '[slow0]', more: ['[slow0]', '[slow0]'] })
  expectWithin(performance.now() - before, 3000)
  const plain = redact(...Array.from({ length: 30 }, (_, n) => ({ name: `emp${n}`, pattern: 'EMP-\\d{1,6}' })))
  expect(plain.text(text)).toBe(text.replace('EMP-1', '[emp0]'))
})
