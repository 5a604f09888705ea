import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { SandboxFor } from '../runtime/execution/sandbox/sandboxes.ts'

/** How the key of one file is kept in it: under the key of the run's other data. */
export type FileKeys = SandboxFor['fileKeys']

/** The file is not what was written: cut, changed, or of another run. */
export class WorkspaceFileError extends Error {
  override name = 'WorkspaceFileError'
}

const MAGIC = 'wbw1 '
const ALGORITHM = 'aes-256-gcm'
const PIECE = 256 * 1024
const TAG = 16
const LAST = 0x8000_0000
const MAX_HEADER = 4096

/** Each file has a key of its own, so that counting is enough for its nonces. */
function nonceOf(index: number): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUInt32BE(index, 8)
  return nonce
}

/**
 * Writes a workspace sealed: a line with the file's key, itself sealed, then pieces under AES-256-GCM, of which each says its length
 * and whether it is the last; place and mark are authenticated, so no piece can be moved, dropped or taken for the end.
 */
export async function writeWorkspace(path: string, chunks: AsyncIterable<Uint8Array>, keys: FileKeys): Promise<void> {
  const key = randomBytes(32)
  const file = createWriteStream(path, { mode: 0o600 })
  const done = finished(file)
  done.catch(() => undefined)
  const put = async (bytes: Uint8Array) => {
    if (!file.write(bytes)) await Promise.race([once(file, 'drain'), done])
  }
  let index = 0
  const seal = async (plain: Uint8Array, last: boolean) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(last ? (plain.length | LAST) >>> 0 : plain.length)
    const cipher = createCipheriv(ALGORITHM, key, nonceOf(index++)).setAAD(length)
    await put(Buffer.concat([length, cipher.update(plain), cipher.final(), cipher.getAuthTag()]))
  }
  try {
    await put(Buffer.from(`${MAGIC}${keys.seal(key.toString('base64'))}\n`))
    let waiting = Buffer.alloc(0)
    for await (const chunk of chunks) {
      waiting = Buffer.concat([waiting, chunk])
      for (; waiting.length > PIECE; waiting = waiting.subarray(PIECE)) await seal(waiting.subarray(0, PIECE), false)
    }
    await seal(waiting, true)
    file.end()
    await done
  } catch (error) {
    file.destroy()
    throw error
  }
}

/** Reads what was written; a file from before workspaces were sealed is read as it is. */
export async function* readWorkspace(path: string, keys: FileKeys): AsyncGenerator<Uint8Array> {
  let key: Buffer | undefined
  let waiting: Buffer = Buffer.alloc(0)
  let clear: boolean | undefined
  let index = 0
  let ended = false
  for await (const chunk of createReadStream(path, { highWaterMark: PIECE }) as AsyncIterable<Buffer>) {
    if (clear) {
      yield chunk
      continue
    }
    waiting = Buffer.concat([waiting, chunk])
    if (clear === undefined && waiting.length >= MAGIC.length)
      clear = !waiting.subarray(0, MAGIC.length).equals(Buffer.from(MAGIC))
    if (clear) {
      yield waiting
      continue
    }
    if (key === undefined) {
      const end = waiting.indexOf(10)
      if (end < 0 && waiting.length > MAX_HEADER) throw new WorkspaceFileError('its first line has no end')
      if (end < 0) continue
      key = Buffer.from(keys.open(waiting.toString('utf8', MAGIC.length, end)), 'base64')
      waiting = waiting.subarray(end + 1)
    }
    while (waiting.length >= 4) {
      const said = waiting.readUInt32BE(0)
      const length = said & ~LAST
      if (length > PIECE || ended) throw new WorkspaceFileError('a piece of it is not as it was written')
      if (waiting.length < 4 + length + TAG) break
      yield opened(key, index++, waiting.subarray(0, 4), waiting.subarray(4, 4 + length + TAG))
      ended = (said & LAST) !== 0
      waiting = waiting.subarray(4 + length + TAG)
    }
  }
  if (!clear && (!ended || waiting.length > 0)) throw new WorkspaceFileError('its end is missing')
}

function opened(key: Buffer, index: number, length: Buffer, sealed: Buffer): Uint8Array {
  try {
    const decipher = createDecipheriv(ALGORITHM, key, nonceOf(index)).setAAD(length)
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG))
    return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG)), decipher.final()])
  } catch (cause) {
    throw new WorkspaceFileError('a piece of it is not as it was written', { cause })
  }
}
