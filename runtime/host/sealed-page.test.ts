import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { portableCipher } from '../vault/portable-cipher.ts'
import type { RecordCipher, SealedText } from '../vault/records.ts'
import { nativeCipher } from './native-cipher.ts'
import { openPage } from './sealed-page.ts'

const bytes = new Uint8Array(32).map((_, at) => at * 7)
const key = createSecretKey(bytes)
const plain = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 80 }),
  fc.integer({ min: 0, max: 1000 }).map(length => 'é{"x":1}'.repeat(125).slice(0, length)),
)
const about = fc.oneof(fc.string({ unit: 'binary', maxLength: 80 }), fc.constant(''))
const some = (minLength: number) => fc.array(fc.tuple(plain, about), { minLength, maxLength: 30 })

const sealedWith = (cipher: RecordCipher, given: readonly (readonly [string, string])[]): SealedText[] =>
  given.map(([text, additional]) => ({ sealed: cipher.seal(bytes, text, additional), additional }))
const opensAlone = ({ sealed, additional }: SealedText) => opens(() => nativeCipher.open(bytes, sealed, additional))
function opens(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
const flipped = (sealed: string, bit: number) => {
  const raw = Buffer.from(sealed, 'base64url')
  raw[(bit >> 3) % raw.length]! ^= 1 << (bit & 7)
  return raw.toString('base64url')
}

describe('a page of sealed texts', () => {
  it('holds what each of them holds, whoever sealed it, with any additional data', () => {
    fc.assert(
      fc.property(some(0), given => {
        for (const cipher of [nativeCipher, portableCipher]) {
          const texts = sealedWith(cipher, given)
          expect(openPage(key, texts)).toEqual(given.map(([text]) => text.toWellFormed()))
          expect(portableCipher.openMany(bytes, texts)).toEqual(given.map(([text]) => text.toWellFormed()))
        }
      }),
      { numRuns: 150 },
    )
  })

  it('does not open with any one bit changed, of a nonce, a text or a tag', () => {
    const given = ['', 'a', 'sixteen letters!', 'more than sixteen letters'].map((text, at) => [text, `${at}`] as const)
    const texts = sealedWith(nativeCipher, given)
    for (const [at, { sealed }] of texts.entries()) {
      for (let bit = 0; bit < Buffer.from(sealed, 'base64url').length * 8; bit++) {
        const tampered = texts.with(at, { ...texts[at]!, sealed: flipped(sealed, bit) })
        expect(
          opens(() => openPage(key, tampered)),
          `bit ${bit} of ${at}`,
        ).toBe(false)
      }
    }
    expect(openPage(key, texts)).toEqual(given.map(([text]) => text))
  })

  it('opens where each of its texts opens, and only there, whatever was done to how many of them', () => {
    type Change = (texts: SealedText[], at: number, from: number, by: number) => void
    const changes: Change[] = [
      // The same change at several places must not make up for itself.
      (texts, at, _, by) => (texts[at] = { ...texts[at]!, sealed: flipped(texts[at]!.sealed, by) }),
      (texts, at, from) => (texts[at] = texts[from]!),
      (texts, at, from) => (texts[at] = { ...texts[at]!, sealed: texts[from]!.sealed }),
      (texts, at, from) => (texts[at] = { ...texts[at]!, additional: texts[from]!.additional }),
      (texts, at, _, by) => (texts[at] = { ...texts[at]!, sealed: texts[at]!.sealed.slice(0, by % 60) }),
      (texts, at, _, by) => (texts[at] = { ...texts[at]!, additional: '\0'.repeat(by % 33) }),
      (texts, at, _, by) => (texts[at] = { ...texts[at]!, sealed: `${texts[at]!.sealed}${'A'.repeat(by % 40)}` }),
      (texts, at, _, by) =>
        (texts[at] = { ...texts[at]!, sealed: texts[at]!.sealed.replace(/./, '.\u2028='[by % 3]!) }),
      (texts, at) => texts.splice(at, 1),
      (texts, at, from) => {
        const [one, other] = [texts[at]!, texts[from]!]
        texts[at] = { ...one, sealed: other.sealed }
        texts[from] = { ...other, sealed: one.sealed }
      },
    ]
    const change = fc.tuple(fc.constantFrom(...changes), fc.nat(), fc.nat(), fc.nat({ max: 4000 }))
    let refused = 0
    fc.assert(
      fc.property(some(1), fc.array(change, { maxLength: 4 }), fc.boolean(), (given, made, same) => {
        const texts = sealedWith(nativeCipher, given)
        for (const [change, at, from, by] of made) {
          if (texts.length > 0) change(texts, at % texts.length, from % texts.length, same ? made[0]![3] : by)
        }
        const each = texts.every(opensAlone)
        if (!each) refused++
        expect(opens(() => openPage(key, texts))).toBe(each)
        expect(opens(() => nativeCipher.openMany(bytes, texts))).toBe(each)
        if (each)
          expect(openPage(key, texts)).toEqual(texts.map(one => nativeCipher.open(bytes, one.sealed, one.additional)))
      }),
      { numRuns: 1500 },
    )
    expect(refused).toBeGreaterThan(500)
  })

  it('does not open under another key', () => {
    const texts = sealedWith(
      nativeCipher,
      Array.from({ length: 10 }, (_, at) => ['text', `${at}`] as const),
    )
    expect(() => openPage(createSecretKey(new Uint8Array(32)), texts)).toThrow()
  })

  it('takes as many as it has room for, and the rest are opened all the same', () => {
    const length = (at: number) => (at % 50 === 30 ? 70_000 : at % 15 === 7 ? 9000 : (at * 37) % 1500)
    const given = Array.from({ length: 400 }, (_, at) => ['x'.repeat(length(at)), `event ${at}`] as const)
    const texts = sealedWith(nativeCipher, given)
    expect(openPage(key, texts, 30)).toEqual([])
    expect(openPage(key, texts)).toHaveLength(30)
    expect(openPage(key, texts, 20)).toEqual(given.slice(20, 30).map(([text]) => text))
    expect(nativeCipher.openMany(bytes, texts)).toEqual(given.map(([text]) => text))
    for (const at of [0, 29, 30, 399]) {
      const tampered = texts.with(at, { ...texts[at]!, additional: 'event' })
      expect(() => nativeCipher.openMany(bytes, tampered)).toThrow()
    }
  })
})
