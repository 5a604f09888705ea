import { randomBytes } from 'node:crypto'
import { closeSync, constants, createWriteStream, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openPieces, SEALED_PIECE, sealPieces } from '../../sealed-pieces.ts'
import { IsolationError } from '../driver.ts'
import { asStartFailure } from '../spoiled-snapshot.ts'
import { JAIL } from './requests.ts'

const KEY_BYTES = 32
export const SNAPSHOT_FILES = [JAIL.state, JAIL.memory]
const BLOCK = 256 * 1024

/** One key for each file, since a key seals one stream. */
export const newSealKey = () => randomBytes(SNAPSHOT_FILES.length * KEY_BYTES)

const keyAt = (key: Uint8Array, index: number) => key.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES)

/** Each block is read over the one before, which is used by then. */
async function* blocksOf(file: FileHandle): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafeSlow(BLOCK)
  for (;;) {
    let filled = 0
    while (filled < BLOCK) {
      const { bytesRead } = await file.read(block, filled, BLOCK - filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    if (filled > 0) yield block.subarray(0, filled)
    if (filled < BLOCK) return
  }
}

/** The machine's process may have put a link in its place, which is not followed out of the jail. */
async function openWritten(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new IsolationError('start_failed', `What stands at ${path} is no file.`)
}

/** What a machine has written of itself into its jail, sealed, without the pages that hold nothing. */
export async function sealFiles(key: Uint8Array, root: string, folder: string): Promise<void> {
  for (const [index, name] of SNAPSHOT_FILES.entries()) {
    const from = await openWritten(join(root, name))
    try {
      const to = createWriteStream(join(folder, name), { mode: 0o600, flush: true })
      await pipeline(sealPieces(keyAt(key, index), withoutZeros(blocksOf(from))), to)
    } finally {
      await from.close()
    }
  }
}

/**
 * The same into the jail of a new one, which must not run before all of it was found to be whole. It blocks: it is meant for
 * a process of its own, whose memory these files are then.
 */
export async function openFiles(key: Uint8Array, folder: string, root: string): Promise<void> {
  for (const [index, name] of SNAPSHOT_FILES.entries()) {
    const from = openSync(join(folder, name), 'r')
    const to = openSync(join(root, name), 'w', 0o600)
    try {
      const length = await writeRuns(openPieces(keyAt(key, index), piecesOf(from)), (data, at) => {
        for (let done = 0; done < data.length; ) done += writeSync(to, data, done, data.length - done, at + done)
      })
      ftruncateSync(to, length)
    } catch (cause) {
      throw asStartFailure(cause)
    } finally {
      closeSync(from)
      closeSync(to)
    }
  }
}

async function* piecesOf(file: number): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = Buffer.allocUnsafe(SEALED_PIECE)
    const length = readSync(file, piece)
    if (length === 0) return
    yield piece.subarray(0, length)
  }
}

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
