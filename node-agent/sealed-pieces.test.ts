import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openPieces, SEALED_PIECE, sealPieces } from './sealed-pieces.ts'

const KEY = randomBytes(32)

async function* given(chunks: Iterable<Uint8Array>) {
  yield* chunks
}
async function all(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const found: Uint8Array[] = []
  for await (const piece of pieces) found.push(piece)
  return found
}

describe('a stream that was sealed in pieces', () => {
  it('opens for nobody when a piece is moved, left out, given twice or of another stream', async () => {
    const content = randomBytes(SEALED_PIECE * 4)
    const own = await all(sealPieces(KEY, given([content])))
    const other = await all(sealPieces(randomBytes(32), given([content])))
    expect(own).toHaveLength(5)
    expect(Buffer.concat(await all(openPieces(KEY, given(own)))).equals(content)).toBe(true)
    const order = fc.array(fc.nat(own.length - 1), { maxLength: own.length + 1 })
    await fc.assert(
      fc.asyncProperty(order, fc.nat(own.length), async (places, foreign) => {
        const pieces = places.map((place, at) => (at === foreign ? other : own)[place]!)
        fc.pre(pieces.length !== own.length || pieces.some((piece, at) => piece !== own[at]))
        await expect(all(openPieces(KEY, given(pieces)))).rejects.toThrow(/as it was written|end is missing/)
      }),
      { numRuns: 60 },
    )
    await expect(all(openPieces(KEY, given(other)))).rejects.toThrow('as it was written')
  })

  it('is in memory one piece at a time, both ways', async () => {
    const CHUNK = 64 * 1024
    let taken = 0
    function* source() {
      for (; taken < 64; taken++) yield Buffer.alloc(CHUNK)
    }
    let read = 0
    async function* counted(sealed: AsyncIterable<Uint8Array>) {
      for await (const piece of sealed) {
        read++
        yield piece
      }
    }
    let opened = 0
    for await (const piece of openPieces(KEY, counted(sealPieces(KEY, given(source()))))) {
      opened += piece.length
      expect(read * SEALED_PIECE - opened).toBeLessThanOrEqual(SEALED_PIECE)
      expect(taken * CHUNK - opened).toBeLessThanOrEqual(2 * SEALED_PIECE)
    }
    expect(opened).toBe(64 * CHUNK)
  })
})
