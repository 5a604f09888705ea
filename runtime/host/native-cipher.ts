import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'
import type { RecordCipher } from '../vault/records.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE = 12
const TAG = 16

/** Nonces of many seals at once: asking the system for each one costs as much as the cipher does. */
const pool = Buffer.alloc(NONCE * 512)
let used = pool.length

function newNonce(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += NONCE
  return Buffer.from(pool.subarray(used - NONCE, used))
}

function seal(key: Uint8Array, plain: Uint8Array, additional: string): Buffer {
  const nonce = newNonce()
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(additional))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

function open(key: Uint8Array, sealed: Buffer, additional: string): Buffer {
  if (sealed.length < NONCE + TAG) throw new RangeError('too short to be sealed')
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE))
  decipher.setAAD(Buffer.from(additional)).setAuthTag(sealed.subarray(-TAG))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()])
}

/** Node's own, without a promise: run data is sealed and opened on the path of a step. */
export const nativeCipher: RecordCipher = {
  seal: (key, text, additional) => seal(key, Buffer.from(text), additional).toString('base64url'),
  open: (key, sealed, additional) => open(key, Buffer.from(sealed, 'base64url'), additional).toString(),
  sealBytes: seal,
  openBytes: (key, sealed, additional) => open(key, Buffer.from(sealed), additional),
}
