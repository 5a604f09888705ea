import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { SandboxFor } from '../runtime/execution/sandbox/sandboxes.ts'
import { openPieces, SEALED_PIECE, SealedPiecesError, sealPieces } from './sealed-pieces.ts'

/** How the key of one file is kept in it: under the key of the run's other data. */
export type FileKeys = SandboxFor['fileKeys']

const MAGIC = 'wbw1 '
const MAX_HEADER = 4096

/** Writes a workspace sealed: a line with the file's key, itself sealed, then the pieces. */
export async function writeWorkspace(path: string, chunks: AsyncIterable<Uint8Array>, keys: FileKeys): Promise<void> {
  async function* whole() {
    const key = randomBytes(32)
    yield Buffer.from(`${MAGIC}${keys.seal(key.toString('base64'))}\n`)
    yield* sealPieces(key, chunks)
  }
  await pipeline(whole(), createWriteStream(path, { mode: 0o600 }))
}

/** Reads what was written; a file from before workspaces were sealed is read as it is. */
export async function* readWorkspace(path: string, keys: FileKeys): AsyncGenerator<Uint8Array> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_HEADER), 0, MAX_HEADER, 0)
    const head = buffer.subarray(0, bytesRead)
    const from = (start: number) => file.createReadStream({ start, highWaterMark: SEALED_PIECE, autoClose: false })
    if (head.length < MAGIC.length) throw new SealedPiecesError('its end is missing')
    if (head.toString('latin1', 0, MAGIC.length) !== MAGIC) return yield* from(0)
    const end = head.indexOf(10)
    if (end < 0) throw new SealedPiecesError('its first line has no end')
    const key = Buffer.from(keys.open(head.toString('utf8', MAGIC.length, end)), 'base64')
    yield* openPieces(key, from(end + 1))
  } finally {
    await file.close()
  }
}
