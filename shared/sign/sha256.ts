import { sha256 as portable } from '@noble/hashes/sha2.js'
import { toHex, utf8 } from './bytes.ts'

/** One-shot SHA-256. The core takes it as a parameter, so that a host may hand in its native one. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array

export const sha256: Sha256 = portable

export function sha256Hex(data: string | Uint8Array, hash: Sha256 = sha256): string {
  return toHex(hash(typeof data === 'string' ? utf8(data) : data))
}
