import type { HeaderList } from '../upstream/transport.ts'

/**
 * Holds back the piece with which a body of a stated length is complete, so that the client has not all of it before the receipt is
 * stored. A body without a length ends by its end, and passes as it comes.
 */
export function heldEnd(headers: HeaderList) {
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  let left = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
  let lastPiece: Uint8Array | undefined
  return {
    /** What may be sent now: undefined for the piece that is held back. */
    pass(chunk: Uint8Array): Uint8Array | undefined {
      left -= chunk.length
      const before = lastPiece
      lastPiece = left <= 0 ? chunk : undefined
      if (lastPiece === undefined) return chunk
      return before
    },
    /** The piece that was held back. */
    rest: (): Uint8Array | undefined => lastPiece,
  }
}
