import { createCipheriv, createDecipheriv } from 'node:crypto'

/** It is not what was sealed: changed, cut, in another order, or sealed under another key. */
export class SealedPiecesError extends Error {
  override name = 'SealedPiecesError'
}

/** How much is sealed at a time, and so what is in memory of it. */
const PIECE = 256 * 1024
const ALGORITHM = 'aes-256-gcm'
const HEAD = 4
const TAG = 16
/** A piece as it is written; who reads a file by so much has each piece whole and copies none. */
export const SEALED_PIECE = HEAD + PIECE + TAG
const LAST = 0x8000_0000

/** Each stream has a key of its own, so that counting is enough for its nonces. */
function nonceOf(index: number): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUInt32BE(index, 8)
  return nonce
}

/**
 * Seals a stream in pieces under AES-256-GCM, of which each says its length and whether it is the last; place and mark are
 * authenticated, so no piece can be moved, dropped or taken for the end. The key must seal nothing else.
 */
export async function* sealPieces(key: Uint8Array, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const piece = Buffer.allocUnsafe(PIECE)
  let filled = 0
  let index = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      if (filled === PIECE) {
        yield sealed(key, index++, piece, false)
        filled = 0
      }
      const part = chunk.subarray(at, at + PIECE - filled)
      piece.set(part, filled)
      filled += part.length
      at += part.length
    }
  }
  yield sealed(key, index, piece.subarray(0, filled), true)
}

function sealed(key: Uint8Array, index: number, plain: Uint8Array, last: boolean): Uint8Array {
  const head = Buffer.alloc(HEAD)
  head.writeUInt32BE(last ? (plain.length | LAST) >>> 0 : plain.length)
  const cipher = createCipheriv(ALGORITHM, key, nonceOf(index)).setAAD(head)
  return Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** What was sealed, each piece once it was found to be whole; only with the last one is it known that none is missing. */
export async function* openPieces(key: Uint8Array, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Buffer = Buffer.alloc(0)
  let index = 0
  let ended = false
  for await (const chunk of chunks) {
    waiting =
      waiting.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : Buffer.concat([waiting, chunk])
    while (waiting.length >= HEAD) {
      const said = waiting.readUInt32BE(0)
      const length = said & ~LAST
      if (length > PIECE || ended) throw new SealedPiecesError('a piece of it is not as it was written')
      const whole = HEAD + length + TAG
      if (waiting.length < whole) break
      yield opened(key, index++, waiting.subarray(0, whole))
      ended = (said & LAST) !== 0
      waiting = waiting.subarray(whole)
    }
  }
  if (!ended || waiting.length > 0) throw new SealedPiecesError('its end is missing')
}

function opened(key: Uint8Array, index: number, piece: Buffer): Uint8Array {
  try {
    const decipher = createDecipheriv(ALGORITHM, key, nonceOf(index)).setAAD(piece.subarray(0, HEAD))
    decipher.setAuthTag(piece.subarray(-TAG))
    const plain = decipher.update(piece.subarray(HEAD, -TAG))
    // Of this mode nothing is left for the end but the comparison of the tag.
    decipher.final()
    return plain
  } catch (cause) {
    throw new SealedPiecesError('a piece of it is not as it was written', { cause })
  }
}
