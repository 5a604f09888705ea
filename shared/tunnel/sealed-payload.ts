import { concat, fromHex, utf8 } from '../sign/bytes.ts'

/** PKCS#8 wrapping of a raw X25519 private key (RFC 8410 §7): this prefix, then the 32 bytes. */
const PKCS8_PREFIX = fromHex('302e020100300506032b656e04220420')
const X25519 = { name: 'X25519' }
const INFO = utf8('waybill/sealed-box/v1')
const KEY_BYTES = 32
const NONCE = new Uint8Array(12)

export interface BoxKeys {
  /** Raw, 32 bytes each. */
  publicKey: Uint8Array<ArrayBuffer>
  privateKey: Uint8Array<ArrayBuffer>
}

export async function newBoxKeys(): Promise<BoxKeys> {
  const pair = (await crypto.subtle.generateKey(X25519, true, ['deriveBits'])) as CryptoKeyPair
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey))
  return {
    publicKey: new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)),
    privateKey: pkcs8.slice(PKCS8_PREFIX.length),
  }
}

/**
 * A text for the holder of the private key of `to`: an ephemeral X25519 key, HKDF-SHA256 over the shared secret and both public
 * keys, AES-256-GCM with `place` as additional data, so that a box moved elsewhere does not open. The key seals this one box, so
 * its nonce is constant. The form is the ephemeral public key, then the ciphertext.
 */
export async function sealTo(
  to: Uint8Array<ArrayBuffer>,
  plain: Uint8Array<ArrayBuffer>,
  place: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const own = await newBoxKeys()
  const key = await keyOf(own.privateKey, to, own.publicKey, to)
  const params = { name: 'AES-GCM', iv: NONCE, additionalData: utf8(place) }
  return concat(own.publicKey, new Uint8Array(await crypto.subtle.encrypt(params, key, plain)))
}

/** Throws when the box was not sealed to these keys and this place, or was changed. */
export async function openSealed(keys: BoxKeys, box: Uint8Array, place: string): Promise<Uint8Array<ArrayBuffer>> {
  const from = box.slice(0, KEY_BYTES) as Uint8Array<ArrayBuffer>
  try {
    const key = await keyOf(keys.privateKey, from, from, keys.publicKey)
    const params = { name: 'AES-GCM', iv: NONCE, additionalData: utf8(place) }
    return new Uint8Array(await crypto.subtle.decrypt(params, key, box.slice(KEY_BYTES) as Uint8Array<ArrayBuffer>))
  } catch (cause) {
    throw new Error(`what was sealed for ${place} does not open with this key`, { cause })
  }
}

async function keyOf(
  own: Uint8Array<ArrayBuffer>,
  other: Uint8Array<ArrayBuffer>,
  ephemeral: Uint8Array<ArrayBuffer>,
  recipient: Uint8Array<ArrayBuffer>,
): Promise<CryptoKey> {
  const [secretKey, publicKey] = await Promise.all([
    crypto.subtle.importKey('pkcs8', concat(PKCS8_PREFIX, own), X25519, false, ['deriveBits']),
    crypto.subtle.importKey('raw', other, X25519, false, []),
  ])
  const shared = await crypto.subtle.deriveBits({ name: 'X25519', public: publicKey }, secretKey, 256)
  const base = await crypto.subtle.importKey('raw', shared, 'HKDF', false, ['deriveKey'])
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: concat(ephemeral, recipient), info: INFO }
  return crypto.subtle.deriveKey(hkdf, base, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
}
