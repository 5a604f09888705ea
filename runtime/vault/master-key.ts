import { fromBase64, utf8 } from '../../shared/sign/bytes.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'

export const MASTER_KEY_BYTES = 32

export interface MasterKey {
  /** Tells keys apart in a sealed text and in a message; says nothing about the key. */
  id: string
  /** Named by what makes it: Node's own types have no global `CryptoKey`. */
  key: Awaited<ReturnType<typeof crypto.subtle.importKey>>
}

/** The key that wraps the key of every sealed record. It is not extractable: what holds it can use it, not print it. */
export async function masterKey(bytes: Uint8Array<ArrayBuffer>): Promise<MasterKey> {
  if (bytes.length !== MASTER_KEY_BYTES) {
    throw new TypeError(`expected a master key of ${MASTER_KEY_BYTES} bytes, got ${bytes.length}`)
  }
  const named = new Uint8Array([...utf8('waybill/master-key/v1\n'), ...bytes])
  const key = await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt'])
  return { id: sha256Hex(named).slice(0, 16), key }
}

/** Reads the base64 text of a master key; undefined when it is not 32 bytes of base64. */
export function readMasterKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = fromBase64(text.trim())
    return bytes.length === MASTER_KEY_BYTES ? bytes : undefined
  } catch {
    return undefined
  }
}
