import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isOwnPath } from './consent.ts'

it('lets nothing through that leads a browser to another address', () => {
  const piece = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    'ui',
    '@',
    ':',
    'evil.example',
    '%2f',
    '\t',
    '\n',
    '?',
    '#',
    ' ',
    '\u3002',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
      const path = pieces.join('')
      if (isOwnPath(path)) expect(new URL(path, 'https://here.example').origin).toBe('https://here.example')
    }),
    { numRuns: 2000 },
  )
})

it('takes paths with a query', () => {
  for (const path of ['/', '/ui/connectors', '/ui/connectors?tab=1&x=%20']) expect(isOwnPath(path)).toBe(true)
  for (const path of ['', 'ui', '//x', '/\\x', 'https://x', '/a#b', '/a b']) expect(isOwnPath(path)).toBe(false)
})
