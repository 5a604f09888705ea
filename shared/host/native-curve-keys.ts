import {
  createCipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { fromHex, toHex } from '../sign/bytes.ts'
import type { CurveKeys } from '../sign/curve-keys.ts'
import { publicKey } from '../sign/ed25519.ts'
import { BOX_INFO, BOX_NONCE } from '../tunnel/sealed-payload.ts'

/** Of the raw 32 bytes of a key, as RFC 8410 wraps them. */
const SPKI = { ed25519: fromHex('302a300506032b6570032100'), x25519: fromHex('302a300506032b656e032100') }
const PKCS8_ED25519 = fromHex('302e020100300506032b657004220420')

/** Reading a key costs as much as a signature; those of nodes and pools are few. */
const known = new Map<string, KeyObject>()
const MOST_KNOWN = 1000

function keyOf(raw: Uint8Array, kind: keyof typeof SPKI): KeyObject {
  const name = `${kind} ${toHex(raw)}`
  const found = known.get(name)
  if (found) return found
  const made = createPublicKey({ key: Buffer.concat([SPKI[kind], raw]), format: 'der', type: 'spki' })
  if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value as string)
  known.set(name, made)
  return made
}

/** As a JWK has it: to write the key out in DER takes a fifth of what a box takes. */
const rawOf = (key: KeyObject): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url'))

/**
 * Node's own, without a promise: WebCrypto hands each operation to another thread, which costs the caller more than the operation (measured:
 * a quarter of what a control plane did for a run on a node).
 */
export const nativeCurveKeys: CurveKeys = {
  async signer(seed) {
    if (seed.length !== 32) throw new TypeError(`expected a signing seed of 32 bytes, got ${seed.length}`)
    const key = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: 'der', type: 'pkcs8' })
    return {
      ...publicKey(rawOf(createPublicKey(key))),
      sign: async message => Uint8Array.from(sign(null, message, key)),
    }
  },

  async verifySignature(raw, signature, message) {
    if (raw.length !== 32 || signature.length !== 64) return false
    return verify(null, message, keyOf(raw, 'ed25519'), signature)
  },

  async sealTo(to, plain, place) {
    const own = generateKeyPairSync('x25519')
    const ephemeral = rawOf(own.publicKey)
    const shared = diffieHellman({ privateKey: own.privateKey, publicKey: keyOf(to, 'x25519') })
    const key = new Uint8Array(hkdfSync('sha256', shared, Buffer.concat([ephemeral, to]), BOX_INFO, 32))
    const cipher = createCipheriv('aes-256-gcm', key, BOX_NONCE).setAAD(Buffer.from(place))
    return Uint8Array.from(Buffer.concat([ephemeral, cipher.update(plain), cipher.final(), cipher.getAuthTag()]))
  },
}
