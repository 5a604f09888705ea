import fc from 'fast-check'
import { expect, it } from 'vitest'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { portableCipher } from './portable-cipher.ts'

const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
const ciphers = [nativeCipher, portableCipher]

it('opens what the native cipher sealed, and the other way round', () => {
  fc.assert(
    fc.property(key, fc.string({ unit: 'grapheme' }), fc.string(), (key, text, additional) => {
      for (const one of ciphers) {
        const sealed = one.seal(key, text, additional)
        for (const other of ciphers) expect(other.open(key, sealed, additional)).toBe(text.toWellFormed())
        const bytes = new TextEncoder().encode(text)
        const sealedBytes = one.sealBytes(key, bytes, additional)
        for (const other of ciphers) expect([...other.openBytes(key, sealedBytes, additional)]).toEqual([...bytes])
      }
    }),
    { numRuns: 100 },
  )
})

it('opens nothing that was changed, cut, moved, or sealed under another key', () => {
  fc.assert(
    fc.property(key, fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.nat(), (key, bytes, at) => {
      const sealed = Uint8Array.from(portableCipher.sealBytes(key, bytes, 'here'))
      const changed = Uint8Array.from(sealed)
      changed[at % changed.length]! ^= 1
      const other = Uint8Array.from(key, byte => byte ^ 1)
      expect(() => portableCipher.openBytes(key, changed, 'here')).toThrow()
      expect(() => portableCipher.openBytes(key, sealed.subarray(0, at % sealed.length), 'here')).toThrow()
      expect(() => portableCipher.openBytes(key, sealed, 'there')).toThrow()
      expect(() => portableCipher.openBytes(other, sealed, 'here')).toThrow()
    }),
  )
})
