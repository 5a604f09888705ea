import { sha256 as portable } from '@noble/hashes/sha2.js'
import { concat, toHex, utf8 } from './bytes.ts'

/** One-shot SHA-256. The core takes it as a parameter, so that a host may hand in its native one. */
export interface Sha256 {
  (bytes: Uint8Array): Uint8Array
  /** The same in lower hex, where the host has it: two objects less for each hash. */
  hex?: (bytes: Uint8Array) => string
  /** A hash over bytes that come in pieces, where the host has its own. */
  create?: () => RunningSha256
}

export interface RunningSha256 {
  update(bytes: Uint8Array): unknown
  digest(): Uint8Array
}

export const sha256: Sha256 = portable

/** A hash over bytes that come in pieces: the host's own, else the portable one. */
export const runningSha256 = (hash: Sha256): RunningSha256 => (hash.create ?? portable.create)()

const encoder = new TextEncoder()
const nothing = new Uint8Array(0)
/** What is hashed is written here and forgotten at once: an array of its own for each text takes more time than the hash of it. */
const room = new Uint8Array(64 * 1024)
/** Of a UTF-16 unit in UTF-8. */
const MOST_BYTES = 3

/** Lower hex of the hash over `before` and then the text in UTF-8, or over bytes as they are. */
export function sha256Hex(data: string | Uint8Array, hash: Sha256 = sha256, before: Uint8Array = nothing): string {
  if (typeof data !== 'string') return hex(before.length === 0 ? data : concat(before, data), hash)
  if (before.length + data.length * MOST_BYTES > room.length) return inPieces(data, hash, before)
  room.set(before)
  const { written } = encoder.encodeInto(data, before.length === 0 ? room : room.subarray(before.length))
  return hex(room.subarray(0, before.length + written), hash)
}

/** A long text is never there as bytes in one piece. */
function inPieces(text: string, hash: Sha256, before: Uint8Array): string {
  const running = runningSha256(hash)
  running.update(before)
  for (let at = 0; at < text.length; ) {
    const { read, written } = encoder.encodeInto(text.slice(at, at + room.length), room)
    running.update(room.subarray(0, written))
    at += read
  }
  return toHex(running.digest())
}

function hex(bytes: Uint8Array, hash: Sha256): string {
  return hash.hex === undefined ? toHex(hash(bytes)) : hash.hex(bytes)
}

/** Compares two secrets in a time that tells nothing about where they differ, nor how long the expected one is. */
export function equalSecrets(given: string, expected: string): boolean {
  const [a, b] = [sha256(utf8(given)), sha256(utf8(expected))]
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}
