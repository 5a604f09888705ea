import { createCipheriv, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { SealedText } from '../vault/records.ts'

const BLOCK = 16
const WORDS = BLOCK / 4
const NONCE = 12
const TAG = 16
/** A larger page takes as long (measured). Two bytes count its blocks. */
const ROOM = 64 * 1024

const page = Buffer.alloc(ROOM)
const zeros = Buffer.alloc(ROOM)
const counters = Buffer.alloc(ROOM)
const pageWords = words(page)
const counterWords = words(counters)

/** Where a text stands in the page and in the key stream, in words, and its length in bytes. */
interface Laid {
  body: number
  check: number
  stream: number
  length: number
}

/**
 * Opens texts of a list from a place on, as many as have room, and throws when any of them was changed. What AES-GCM costs for a short text
 * is the making of a cipher; here three are made for all. Texts are sealed one by one, as `native-cipher.ts` has it (SP 800-38D).
 *
 * For each text the page holds what GHASH takes in (§7.2: additional data, ciphertext, their lengths), and then what must have come out
 * of it: the tag without its mask. A step of GHASH adds a block to the state and multiplies, so after a text that was not changed the
 * state is zero again, and the next text begins as if it were alone. After a page that was not changed the host's own GHASH of it is that
 * of as many zeros. docs/decisions/016-one-ghash-for-a-page.md says why no other page has it.
 */
export function openPage(key: KeyObject, texts: readonly SealedText[], from = 0): string[] {
  const laid: Laid[] = []
  let at = 0
  let blocks = 0
  for (let index = from; index < texts.length; index++) {
    const { sealed, additional } = texts[index]!
    const about = Buffer.byteLength(additional)
    // The nonce is read in front of the body, so there is a block at least. One of zeros leaves a state of zero as it is.
    const body = at + padded(Math.max(about, 1))
    if (body + padded(Math.ceil((sealed.length * 3) / 4)) + 2 * BLOCK > ROOM) break
    const length = page.write(sealed, body - NONCE, 'base64url') - NONCE - TAG
    if (length < 0) throw new RangeError('too short to be sealed')
    const lengths = body + padded(length)
    const check = lengths + BLOCK
    const stream = blocks * WORDS
    blocks += 1 + padded(length) / BLOCK
    layCounters((body - NONCE) / 4, stream, blocks * WORDS)
    page.copyWithin(check, body + length, body + length + TAG)
    clear(body + length, check)
    page.writeUInt32BE(about * 8, lengths + 4)
    page.writeUInt32BE(length * 8, lengths + 12)
    clear(at + page.write(additional, at), body)
    laid.push({ body: body / 4, check: check / 4, stream, length })
    at = check + BLOCK
  }
  if (laid.length === 0) return []
  const ecb = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  const plain = ecb.update(counters.subarray(0, blocks * BLOCK))
  const plainWords = words(plain)
  for (const { check, stream } of laid) {
    for (let word = 0; word < WORDS; word++) mix(pageWords, check + word, plainWords[stream + word]!)
  }
  if (!timingSafeEqual(macOf(key, page.subarray(0, at)), macOf(key, zeros.subarray(0, at)))) {
    throw new Error('a text of the page was changed')
  }
  return laid.map(({ body, stream, length }) => {
    const first = stream + WORDS
    for (let word = 0; word * 4 < length; word++) mix(plainWords, first + word, pageWords[body + word]!)
    return plain.toString('utf8', first * 4, first * 4 + length)
  })
}

/** The nonce and a number from 1 on (§7.1): the first block masks the tag, the others the text. */
function layCounters(nonce: number, from: number, to: number): void {
  for (let word = from, count = 1; word < to; word += WORDS, count++) {
    for (let part = 0; part < 3; part++) counterWords[word + part] = pageWords[nonce + part]!
    counters[word * 4 + 14] = count >> 8
    counters[word * 4 + 15] = count
  }
}

/** GMAC under one nonce for all, as no tag of it leaves this place. */
function macOf(key: KeyObject, bytes: Buffer): Buffer {
  const gcm = createCipheriv('aes-256-gcm', key, zeros.subarray(0, NONCE)).setAAD(bytes)
  gcm.final()
  return gcm.getAuthTag()
}

/** For so few bytes the call of `fill` costs more. */
function clear(from: number, to: number): void {
  for (let at = from; at < to; at++) page[at] = 0
}

function mix(into: Uint32Array, at: number, word: number): void {
  into[at] = into[at]! ^ word
}

function padded(length: number): number {
  return (length + BLOCK - 1) & -BLOCK
}

function words(bytes: Buffer): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
}
