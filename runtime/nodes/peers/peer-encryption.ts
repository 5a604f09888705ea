import { readJson } from '../../../shared/json/read-json.ts'
import { concat, utf8 } from '../../../shared/sign/bytes.ts'

/** What was sent is not of a control plane that has this master key, or was changed on its way. */
export class PeerEncryptionError extends Error {
  override name = 'PeerEncryptionError'
}

export interface SealedRequest {
  /** What goes over the wire. */
  bytes: Uint8Array<ArrayBuffer>
  /** Opens the answer to this one request; throws PeerEncryptionError. */
  open(reply: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>
}

export interface OpenedRequest {
  plain: Uint8Array<ArrayBuffer>
  /** Tells this request from every other one. */
  salt: Uint8Array<ArrayBuffer>
  seal(reply: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>
}

export type PeerEncryption = ReturnType<typeof peerEncryption>

const SALT_BYTES = 32
const TAG_BYTES = 16
const NONCE = new Uint8Array(12)
const INFO = { request: utf8('waybill/plane/request/v1'), reply: utf8('waybill/plane/reply/v1') }

/**
 * What control planes of one store say to each other. Each request has a random salt, from which and the master key two keys follow
 * (HKDF-SHA256, RFC 5869): one seals the request, one its answer, both with AES-256-GCM. Each key seals one text, so its nonce is
 * constant. Without the master key a host can neither ask nor answer nor read along, and no answer fits another request. The tag is
 * compared by the platform, in constant time.
 */
export function peerEncryption(master: Uint8Array<ArrayBuffer>) {
  const base = crypto.subtle.importKey('raw', master, 'HKDF', false, ['deriveKey'])
  // A key that cannot be imported is reported at its first use.
  base.catch(() => undefined)

  async function keyOf(salt: Uint8Array<ArrayBuffer>, info: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
    const hkdf = { name: 'HKDF', hash: 'SHA-256', salt, info }
    return crypto.subtle.deriveKey(hkdf, await base, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
  }
  async function seal(key: CryptoKey, plain: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: NONCE }, key, plain))
  }
  async function open(key: CryptoKey, sealed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    try {
      return new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv: NONCE }, key, sealed))
    } catch (cause) {
      throw new PeerEncryptionError('this does not open with the key of this installation', { cause })
    }
  }

  return {
    async ask(plain: Uint8Array<ArrayBuffer>): Promise<SealedRequest> {
      const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES))
      const sealed = await seal(await keyOf(salt, INFO.request), plain)
      return {
        bytes: concat(salt, sealed),
        open: async reply => open(await keyOf(salt, INFO.reply), reply),
      }
    },

    /** Throws PeerEncryptionError. */
    async take(bytes: Uint8Array<ArrayBuffer>): Promise<OpenedRequest> {
      if (bytes.length < SALT_BYTES + TAG_BYTES) throw new PeerEncryptionError('this is too short to be a request')
      const salt = bytes.slice(0, SALT_BYTES)
      const plain = await open(await keyOf(salt, INFO.request), bytes.slice(SALT_BYTES))
      return { plain, salt, seal: async reply => seal(await keyOf(salt, INFO.reply), reply) }
    },
  }
}

/** A head in JSON and a body in bytes, in one piece: the length of the head in four bytes, the head, the body. */
export function packed(head: unknown, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const said = utf8(JSON.stringify(head))
  const length = new Uint8Array(4)
  new DataView(length.buffer).setUint32(0, said.length)
  return concat(length, said, body)
}

/** Throws where it is not of that form; what the head says is for the caller to check. */
export function unpacked(bytes: Uint8Array<ArrayBuffer>): { head: unknown; body: Uint8Array<ArrayBuffer> } {
  const from = 4 + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
  if (from > bytes.length) throw new RangeError('the head is longer than the whole')
  const head: unknown = readJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(4, from)))
  return { head, body: bytes.slice(from) }
}
