import { concat, fromHex, utf8 } from '../sign/bytes.ts'

/** PKCS#8 wrapping of a raw X25519 private key (RFC 8410 §7): this prefix, then the 32 bytes. */
const PKCS8_PREFIX = fromHex('302e020100300506032b656e04220420')
const X25519 = { name: 'X25519' }
export const BOX_INFO = utf8('waybill/sealed-box/v1')
const KEY_BYTES = 32
export const BOX_NONCE = new Uint8Array(12)

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
  // Its private half leaves the host's own key never, which spares an export and an import: most of what a box costs.
  const own = (await crypto.subtle.generateKey(X25519, false, ['deriveBits'])) as CryptoKeyPair
  const ephemeral = new Uint8Array(await crypto.subtle.exportKey('raw', own.publicKey))
  const key = await keyOf(own.privateKey, await publicKeyOf(to), ephemeral, to)
  const params = { name: 'AES-GCM', iv: BOX_NONCE, additionalData: utf8(place) }
  return concat(ephemeral, new Uint8Array(await crypto.subtle.encrypt(params, key, plain)))
}

/** Throws when the box was not sealed to these keys and this place, or was changed. */
export async function openSealed(keys: BoxKeys, box: Uint8Array, place: string): Promise<Uint8Array<ArrayBuffer>> {
  const from = box.slice(0, KEY_BYTES) as Uint8Array<ArrayBuffer>
  try {
    const key = await keyOf(await privateKeyOf(keys.privateKey), await publicKeyOf(from), from, keys.publicKey)
    const params = { name: 'AES-GCM', iv: BOX_NONCE, additionalData: utf8(place) }
    return new Uint8Array(await crypto.subtle.decrypt(params, key, box.slice(KEY_BYTES) as Uint8Array<ArrayBuffer>))
  } catch (cause) {
    throw new Error(`what was sealed for ${place} does not open with this key`, { cause })
  }
}

const publicKeyOf = (raw: Uint8Array<ArrayBuffer>): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', raw, X25519, false, [])

const privateKeys = new WeakMap<Uint8Array, Promise<CryptoKey>>()

/** Reading one costs as much as opening a box, and a node has the same one all the time. */
function privateKeyOf(raw: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const known = privateKeys.get(raw)
  if (known) return known
  const key = crypto.subtle.importKey('pkcs8', concat(PKCS8_PREFIX, raw), X25519, false, ['deriveBits'])
  privateKeys.set(raw, key)
  return key
}

async function keyOf(
  own: CryptoKey,
  other: CryptoKey,
  ephemeral: Uint8Array<ArrayBuffer>,
  recipient: Uint8Array<ArrayBuffer>,
): Promise<CryptoKey> {
  const shared = await crypto.subtle.deriveBits({ name: 'X25519', public: other }, own, 256)
  const base = await crypto.subtle.importKey('raw', shared, 'HKDF', false, ['deriveKey'])
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: concat(ephemeral, recipient), info: BOX_INFO }
  return crypto.subtle.deriveKey(hkdf, base, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
}
