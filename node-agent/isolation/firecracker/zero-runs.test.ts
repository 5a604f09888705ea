import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { withoutZeros, writeRuns } from './sealed-files.ts'

const PAGE = 4096

async function* inPieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield Buffer.from(bytes.subarray(at, at + size))
}

async function collected(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const chunk of chunks) all.push(Buffer.from(chunk))
  return Buffer.concat(all)
}

/** Pages that are empty, full, or hold one byte, and an end that need not be a whole page. */
const memory = fc
  .tuple(
    fc.array(fc.constantFrom<'zero' | 'full' | 'first' | 'last'>('zero', 'zero', 'full', 'first', 'last'), {
      maxLength: 40,
    }),
    fc.nat(PAGE - 1),
  )
  .map(([pages, tail]) => {
    const bytes = new Uint8Array(pages.length * PAGE + tail)
    for (const [index, kind] of pages.entries()) {
      if (kind === 'full') bytes.fill(index + 1, index * PAGE, (index + 1) * PAGE)
      if (kind === 'first') bytes[index * PAGE] = 7
      if (kind === 'last') bytes[(index + 1) * PAGE - 1] = 7
    }
    return bytes
  })

describe('memory without its zeros', () => {
  it('is the same once it is written over zeros, whatever the pieces are in which it comes', async () => {
    await fc.assert(
      fc.asyncProperty(memory, fc.integer({ min: 1, max: 9000 }), async (bytes, size) => {
        const packed = await collected(withoutZeros(inPieces(bytes, 4 * PAGE)))
        const back = new Uint8Array(bytes.length)
        const length = await writeRuns(inPieces(packed, size), (data, at) => back.set(data, at))
        expect(length).toBe(bytes.length)
        expect(Buffer.from(back).equals(Buffer.from(bytes))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('takes as good as nothing where nothing was written', async () => {
    const packed = await collected(withoutZeros(inPieces(new Uint8Array(64 * 2 ** 20), 2 ** 18)))
    expect(packed.length).toBeLessThan(4096)
  })

  it('that ends in the middle of a run is refused', async () => {
    const packed = await collected(withoutZeros(inPieces(new Uint8Array(PAGE).fill(1), PAGE)))
    for (const cut of [1, 7, 9, packed.length - 1]) {
      await expect(writeRuns(inPieces(packed.subarray(0, cut), 100), () => undefined)).rejects.toThrow(RangeError)
    }
  })
})
