import { randomBytes } from 'node:crypto'
import { closeSync, constants, createWriteStream, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openPieces, SEALED_PIECE, sealPieces } from '../../sealed-pieces.ts'
import { IsolationError } from '../driver.ts'
import { asStartFailure } from '../spoiled-snapshot.ts'
import { JAIL } from './jail-files.ts'
import { withoutZeros, writeRuns } from './zero-runs.ts'

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
