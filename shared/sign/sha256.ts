import { sha256 as portable } from '@noble/hashes/sha2.js'
import { toHex, utf8 } from './bytes.ts'

/** One-shot SHA-256. The core takes it as a parameter, so that a host may hand in its native one. */
export interface Sha256 {
  (bytes: Uint8Array): Uint8Array
  /** The same in lower hex, where the host has it: two objects less for each hash. */
  hex?: (bytes: Uint8Array) => string
}

export const sha256: Sha256 = portable

export function sha256Hex(data: string | Uint8Array, hash: Sha256 = sha256): string {
  const bytes = typeof data === 'string' ? utf8(data) : data
  return hash.hex === undefined ? toHex(hash(bytes)) : hash.hex(bytes)
}
