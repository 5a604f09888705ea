import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openPieces, SEALED_PIECE, sealPieces } from '../../sealed-pieces.ts'
import { asStartFailure } from '../spoiled-snapshot.ts'
import { JAIL } from './requests.ts'

const KEY_BYTES = 32
const FILES = [JAIL.state, JAIL.memory]

/** One key for each file, since a key seals one stream. */
export const newSealKey = () => randomBytes(FILES.length * KEY_BYTES)

const keyAt = (key: Uint8Array, index: number) => key.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES)

/** What a machine has written of itself into its jail, sealed. */
export async function sealFiles(key: Uint8Array, root: string, folder: string): Promise<void> {
  for (const [index, file] of FILES.entries()) {
    const to = createWriteStream(join(folder, file), { mode: 0o600, flush: true })
    await pipeline(sealPieces(keyAt(key, index), createReadStream(join(root, file))), to)
  }
}

/** The same into the jail of a new one, which must not run before all of it was found to be whole. */
export async function openFiles(key: Uint8Array, folder: string, root: string): Promise<string[]> {
  for (const [index, file] of FILES.entries()) {
    const from = createReadStream(join(folder, file), { highWaterMark: SEALED_PIECE })
    try {
      await pipeline(openPieces(keyAt(key, index), from), createWriteStream(join(root, file), { mode: 0o600 }))
    } catch (cause) {
      throw asStartFailure(cause)
    }
  }
  return FILES
}
