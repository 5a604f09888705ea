import {
  type Cipheriv,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type Decipheriv,
  type KeyObject,
  randomFillSync,
  scrypt,
} from 'node:crypto'

/** Node's own, on its thread pool: it neither holds up the event loop nor fills the JavaScript heap. */
export const nativeScrypt = (
  password: Uint8Array,
  salt: Uint8Array,
  bytes: number,
  { N, r, p }: { N: number; r: number; p: number },
): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    // Twice what the algorithm takes (128·N·r); the default limit of 32 MiB is just below it.
    scrypt(password, salt, bytes, { N, r, p, maxmem: 256 * N * r + 1024 * 1024 }, (error, key) => {
      if (error) reject(error)
      else resolve(key)
    })
  })

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

/** A key that is given as bytes is prepared anew at each use, which costs eight times what the cipher does (measured: 18 µs). */
const prepared = new WeakMap<Uint8Array, KeyObject>()

function keyOf(bytes: Uint8Array): KeyObject {
  const known = prepared.get(bytes)
  if (known) return known
  const made = createSecretKey(bytes)
  prepared.set(bytes, made)
  return made
}

/** Bytes at a time. */
const PIECE = 64 * 1024

/** What the cipher makes of bytes, in their place: a large text would be there twice. */
function inPlace(cipher: Cipheriv | Decipheriv, bytes: Buffer): Buffer {
  if (bytes.length <= PIECE) bytes.set(cipher.update(bytes))
  else for (let at = 0; at < bytes.length; at += PIECE) bytes.set(cipher.update(bytes.subarray(at, at + PIECE)), at)
  // Throws where the tag does not fit; in this mode nothing is left to come.
  cipher.final()
  return bytes
}

function seal(key: Uint8Array, length: number, write: (plain: Buffer) => void, additional: string): Buffer {
  const nonce = newNonce()
  const sealed = Buffer.allocUnsafe(NONCE + length + TAG)
  const cipher = createCipheriv(ALGORITHM, keyOf(key), nonce).setAAD(Buffer.from(additional))
  sealed.set(nonce)
  const plain = sealed.subarray(NONCE, NONCE + length)
  write(plain)
  inPlace(cipher, plain)
  sealed.set(cipher.getAuthTag(), NONCE + length)
  return sealed
}

/** Overwrites what it opens. */
function open(key: Uint8Array, sealed: Buffer, additional: string): Buffer {
  if (sealed.length < NONCE + TAG) throw new RangeError('too short to be sealed')
  const decipher = createDecipheriv(ALGORITHM, keyOf(key), sealed.subarray(0, NONCE))
  decipher.setAAD(Buffer.from(additional)).setAuthTag(sealed.subarray(-TAG))
  return inPlace(decipher, sealed.subarray(NONCE, -TAG))
}

/** Node's own, without a promise: run data is sealed and opened on the path of a step. */
export const nativeCipher = {
  seal: (key: Uint8Array, text: string, additional: string): string =>
    seal(key, Buffer.byteLength(text), plain => plain.write(text), additional).toString('base64url'),
  open: (key: Uint8Array, sealed: string, additional: string): string =>
    open(key, Buffer.from(sealed, 'base64url'), additional).toString(),
  sealBytes: (key: Uint8Array, bytes: Uint8Array, additional: string): Uint8Array =>
    seal(key, bytes.length, plain => plain.set(bytes), additional),
  openBytes: (key: Uint8Array, sealed: Uint8Array, additional: string): Uint8Array =>
    open(key, Buffer.from(sealed), additional),
}
