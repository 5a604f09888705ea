import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readExactly } from '../../../shared/json/exact-numbers.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { quotedNumbers } from './quoted-numbers.ts'

function through(of: 'json' | 'events', text: string, cuts: readonly number[]): string {
  const bytes = utf8(text)
  const rewriter = quotedNumbers(of)
  const places = [...new Set(cuts.map(at => at % (bytes.length + 1)))].sort((a, b) => a - b)
  const pieces = [0, ...places].map((from, n) => rewriter.push(bytes.subarray(from, places[n] ?? bytes.length)))
  const decoder = new TextDecoder()
  return [...pieces, rewriter.end()].map(piece => decoder.decode(piece, { stream: true })).join('')
}

/** JSON with numbers of any length, and texts that look like them. */
const { json } = fc.letrec<{ json: string; list: string; object: string }>(tie => ({
  list: fc.array(tie('json'), { maxLength: 4 }).map(items => `[${items.join(' ,')}]`),
  object: fc
    .array(fc.tuple(fc.string({ unit: 'grapheme' }), tie('json')), { maxLength: 4 })
    .map(members => `{${members.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(',')}}`),
  json: fc.oneof(
    { depthSize: 'small' },
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(value => JSON.stringify(value)),
    fc.constantFrom(
      '1e400',
      'true',
      'null',
      '"\\"12345678901234567890"',
      '"a\\\\"',
      '-0',
      '"1e400, 12345678901234567891"',
    ),
    tie('list'),
    tie('object'),
  ),
}))

it('a text is read behind it as the exact reader reads it, wherever its bytes are cut', () => {
  fc.assert(
    fc.property(json, fc.array(fc.nat(5000)), (text, cuts) => {
      const read = readExactly(text, written => written)
      expect(readJson(through('json', text, cuts))).toEqual(read)
      const event = `id: 12345678901234567890\ndata: ${text}\r\n\r\n`
      const seen = through('events', `\ufeff${event}: 98765432109876543210\n${event}`, cuts)
      const lines = seen.split(/\r?\n/).filter(line => line !== '')
      expect(lines.filter(line => !line.includes('data'))).toEqual([
        expect.stringContaining('id: 12345678901234567890'),
        ': 98765432109876543210',
        'id: 12345678901234567890',
      ])
      const data = lines.filter(line => line.startsWith('data: '))
      expect(data.map(line => readJson(line.slice(6)))).toEqual([read, read])
    }),
  )
})
