import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { portableCurveKeys } from '../sign/curve-keys.ts'
import { newBoxKeys, openSealed } from '../tunnel/sealed-payload.ts'
import { nativeCurveKeys } from './native-curve-keys.ts'

const bytes = (min: number, max = min) =>
  fc.uint8Array({ minLength: min, maxLength: max }).map(drawn => Uint8Array.from(drawn))

describe('keys of the host and those of WebCrypto', () => {
  it('make the same signatures, and agree on which hold', async () => {
    await fc.assert(
      fc.asyncProperty(bytes(32), bytes(0, 300), fc.nat(63), fc.integer({ min: 0, max: 255 }), async (...drawn) => {
        const [seed, message, at, flip] = drawn
        const [native, portable] = await Promise.all([nativeCurveKeys.signer(seed), portableCurveKeys.signer(seed)])
        expect([native.keyId, native.fingerprint]).toEqual([portable.keyId, portable.fingerprint])
        expect(native.publicKey).toEqual(portable.publicKey)
        const signature = await native.sign(message)
        expect(signature).toEqual(await portable.sign(message))
        signature[at]! ^= flip
        const holds = (keys: typeof nativeCurveKeys) => keys.verifySignature(native.publicKey, signature, message)
        expect(await holds(nativeCurveKeys)).toBe(flip === 0)
        expect(await holds(portableCurveKeys)).toBe(flip === 0)
      }),
      { numRuns: 100 },
    )
  })

  it('refuse signatures and keys of a wrong length, and a key that is no point, without an exception', async () => {
    const { publicKey, sign } = await nativeCurveKeys.signer(new Uint8Array(32).fill(3))
    const message = new Uint8Array(8)
    const signature = await sign(message)
    const cases = [
      [publicKey.slice(1), signature],
      [publicKey, signature.slice(1)],
      [publicKey, new Uint8Array(0)],
      [new Uint8Array(32).fill(255), signature],
      [new Uint8Array(32), signature],
    ] as const
    for (const [raw, given] of cases) {
      expect(await nativeCurveKeys.verifySignature(raw, given, message)).toBe(false)
      expect(await portableCurveKeys.verifySignature(raw, given, message)).toBe(false)
    }
  })

  it('seal boxes that open with the key and the place they were sealed for, and with nothing else', async () => {
    const keys = await newBoxKeys()
    await fc.assert(
      fc.asyncProperty(bytes(0, 2000), fc.string(), async (plain, place) => {
        for (const { sealTo } of [nativeCurveKeys, portableCurveKeys]) {
          const box = await sealTo(keys.publicKey, plain, place)
          expect(await openSealed(keys, box, place)).toEqual(plain)
          await expect(openSealed(keys, box, `${place}x`)).rejects.toThrow('does not open')
          await expect(openSealed(await newBoxKeys(), box, place)).rejects.toThrow('does not open')
        }
      }),
      { numRuns: 50 },
    )
  })

  it('refuse a recipient whose shared secret is zero', async () => {
    await expect(nativeCurveKeys.sealTo(new Uint8Array(32), new Uint8Array(1), 'x')).rejects.toThrow()
    await expect(portableCurveKeys.sealTo(new Uint8Array(32), new Uint8Array(1), 'x')).rejects.toThrow()
  })
})
