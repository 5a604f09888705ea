import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { fromBase64, fromHex, toBase64, toBase64Url, toHex, utf8 } from './bytes.ts'
import { publicKey, signer, verifyPortable, verifySignature } from './ed25519.ts'
import { type ListedKey, verifyWithKeyring } from './keyring.ts'
import vectors from './vectors/rfc8032.json' with { type: 'json' }

afterEach(() => vi.restoreAllMocks())

describe('Ed25519', () => {
  it.each(vectors.tests)('signs and verifies the published test of $publicKey', async test => {
    const own = await signer(fromHex(test.seed))
    const signature = await own.sign(fromHex(test.message))
    expect(toHex(own.publicKey)).toBe(test.publicKey)
    expect(toHex(signature)).toBe(test.signature)
    expect(await verifySignature(own.publicKey, signature, fromHex(test.message))).toBe(true)
    expect(await verifyPortable(own.publicKey, signature, fromHex(test.message))).toBe(true)
  })

  it.each(vectors.tests)('does so where the host has none of its own: $publicKey', async test => {
    vi.spyOn(crypto.subtle, 'importKey').mockRejectedValue(new DOMException('no such algorithm', 'NotSupportedError'))
    const own = await signer(fromHex(test.seed))
    expect(toHex(own.publicKey)).toBe(test.publicKey)
    expect(toHex(await own.sign(fromHex(test.message)))).toBe(test.signature)
  })

  it('refuses every single flipped bit, natively and portably alike', async () => {
    const own = await signer(fromHex(vectors.tests[2]!.seed))
    const message = utf8('receipt')
    const signature = await own.sign(message)
    for (let bit = 0; bit < 512; bit += 7) {
      const bad = signature.slice()
      bad[bit >> 3]! ^= 1 << (bit & 7)
      expect(await verifySignature(own.publicKey, bad, message)).toBe(false)
      expect(await verifyPortable(own.publicKey, bad, message)).toBe(false)
    }
  })

  it('answers false for keys and signatures of a wrong length, and for points off the curve', async () => {
    const message = utf8('x')
    expect(await verifySignature(new Uint8Array(31), new Uint8Array(64), message)).toBe(false)
    expect(await verifySignature(new Uint8Array(32), new Uint8Array(63), message)).toBe(false)
    expect(await verifySignature(new Uint8Array(32).fill(0xff), new Uint8Array(64), message)).toBe(false)
  })

  it('refuses a seed or key of a wrong length with what it expected', async () => {
    await expect(signer(new Uint8Array(31))).rejects.toThrow('expected a signing seed of 32 bytes, got 31')
    expect(() => publicKey(new Uint8Array(33))).toThrow('expected a public key of 32 bytes, got 33')
  })
})

describe('keyring', () => {
  it('verifies receipts of a retired key, and only inside its span', async () => {
    const old = await signer(fromHex(vectors.tests[0]!.seed))
    const next = await signer(fromHex(vectors.tests[1]!.seed))
    const day = (n: number) => new Date(Date.UTC(2026, 0, n))
    const keys: ListedKey[] = [
      { ...publicKey(old.publicKey), status: 'retired', notBefore: day(1), notAfter: day(10) },
      { ...publicKey(next.publicKey), status: 'active', notBefore: day(10) },
    ]
    const message = utf8('receipt')
    const signature = await old.sign(message)
    const check = (at: Date, list = keys) => verifyWithKeyring(list, old.keyId, at, signature, message)

    expect(await check(day(5))).toBe('ok')
    expect(await check(day(11))).toBe('key_not_valid')
    expect(await check(day(5), keys.slice(1))).toBe('unknown_key')
    expect(await check(day(5), [{ ...keys[0]!, status: 'revoked' }])).toBe('key_revoked')
    const other = await verifyWithKeyring(keys, next.keyId, day(11), signature, message)
    expect(other).toBe('signature_invalid')
  })
})

describe('byte texts', () => {
  it('come back as they were', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), bytes => {
        expect(fromHex(toHex(bytes))).toEqual(bytes)
        expect(fromBase64(toBase64(bytes))).toEqual(bytes)
        expect(fromBase64(toBase64Url(bytes))).toEqual(bytes)
      }),
    )
  })

  it('are those of the host, of any length', () => {
    const bytes = Uint8Array.from({ length: 20_001 }, (_, at) => at * 7)
    for (const end of [0, 1, 2, 3, 8191, 8192, 8193, 16_384, 20_001]) {
      const text = Buffer.from(bytes.subarray(0, end)).toString('base64')
      expect(toBase64(bytes.subarray(0, end))).toBe(text)
      expect(fromBase64(text)).toEqual(bytes.subarray(0, end))
    }
  })

  it('are read where they are spelled as they are written, and not otherwise', () => {
    const digits = fc.string({
      unit: fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'),
      maxLength: 12,
    })
    fc.assert(
      fc.property(digits, text => {
        const bytes = Buffer.from(text, 'base64')
        if (bytes.toString('base64').replace(/=+$/, '') === text)
          expect(fromBase64(text)).toEqual(new Uint8Array(bytes))
        else expect(() => fromBase64(text)).toThrow('expected base64')
      }),
    )
  })

  it('have one spelling: stray bits, odd digits and foreign letters are refused', () => {
    expect(() => fromBase64('AB')).toThrow('stray bits')
    expect(() => fromBase64('A')).toThrow('expected base64')
    expect(() => fromBase64('A*==')).toThrow('expected base64')
    expect(() => fromHex('abc')).toThrow('expected lower-case hex')
    expect(() => fromHex('AB')).toThrow('expected lower-case hex')
  })
})
