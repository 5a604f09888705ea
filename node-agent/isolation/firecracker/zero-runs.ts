/** Memory is looked at by pages. */
const PAGE = 4096
const ZEROS = Buffer.alloc(256 * 1024)
const HEAD = 8

/** Where it is data again after its zeros, and how long that lasts: whole pages, up to the end of the block. */
function* runsOf(block: Buffer): Generator<{ zeros: number; data: Buffer }> {
  let at = 0
  while (at < block.length) {
    const from = at
    // Large parts of a young machine's memory were never written.
    if (at === 0 && block.length <= ZEROS.length && block.equals(ZEROS.subarray(0, block.length))) at = block.length
    while (at < block.length && isZero(block, at)) at += PAGE
    const begin = Math.min(at, block.length)
    while (at < block.length && !isZero(block, at)) at += PAGE
    yield { zeros: begin - from, data: block.subarray(begin, Math.min(at, block.length)) }
  }
}

const isZero = (block: Buffer, at: number) => {
  const page = block.subarray(at, at + PAGE)
  return page.equals(ZEROS.subarray(0, page.length))
}

/** Memory without its zeros: for each run of them and what follows, both lengths and the bytes that follow. */
export async function* withoutZeros(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const block of blocks) {
    for (const { zeros, data } of runsOf(block)) {
      const head = Buffer.alloc(HEAD)
      head.writeUInt32BE(zeros)
      head.writeUInt32BE(data.length, 4)
      yield head
      yield data
    }
  }
}

/**
 * The same back, as writes to places of a file that holds zeros where nothing is written. The answer is the length of the
 * whole. What ends in the middle of a run throws RangeError.
 */
export async function writeRuns(
  chunks: AsyncIterable<Uint8Array>,
  write: (data: Uint8Array, at: number) => void,
): Promise<number> {
  let at = 0
  let left = 0
  const head = Buffer.alloc(HEAD)
  let headFilled = 0
  for await (const chunk of chunks) {
    let rest = chunk
    while (rest.length > 0) {
      if (left === 0) {
        const part = rest.subarray(0, HEAD - headFilled)
        head.set(part, headFilled)
        headFilled += part.length
        rest = rest.subarray(part.length)
        if (headFilled < HEAD) break
        at += head.readUInt32BE(0)
        left = head.readUInt32BE(4)
        headFilled = 0
        continue
      }
      const data = rest.subarray(0, left)
      write(data, at)
      at += data.length
      left -= data.length
      rest = rest.subarray(data.length)
    }
  }
  if (left > 0 || headFilled > 0) throw new RangeError('The runs of a memory end in the middle of one.')
  return at
}
