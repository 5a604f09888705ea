import fc from 'fast-check'
import { expect, it } from 'vitest'
import { eventIds } from './http-transport.ts'

it('sees a line that begins with id: wherever the bytes are cut', () => {
  const piece = fc.constantFrom('id:', 'id', 'i', 'd:', ':', ' ', 'data: ', '\n', '\r\n', '\r', 'e1', 'xid:')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat(6), { maxLength: 20 }), (pieces, cuts) => {
      const text = pieces.join('')
      const bytes = new TextEncoder().encode(text)
      const seen = eventIds()
      let at = 0
      for (const cut of cuts) {
        seen.read(bytes.subarray(at, at + cut))
        at += cut
      }
      seen.read(bytes.subarray(at))
      expect(seen.any).toBe(/(?:^|[\r\n])id:/.test(text))
    }),
    { numRuns: 2000 },
  )
})
