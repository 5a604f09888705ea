import { createReadStream, createWriteStream } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { openPieces, SEALED_PIECE, sealPieces } from '../../sealed-pieces.ts'
import { asStartFailure } from '../spoiled-snapshot.ts'
import { withDeadline } from '../with-deadline.ts'
import { giveToQemu } from './qemu-process.ts'
import type { Qmp } from './qmp.ts'

/** The state of a stopped machine in a file; sealed where it has a key, which seals nothing else. */
export interface SavedState {
  path: string
  key?: Uint8Array
}

/**
 * Writes the state of a stopped machine into a file that we opened. QEMU may start no program, and takes no number for a file
 * that it is to write, so it connects to a socket in the machine's own folder.
 */
export async function saveState(qmp: Qmp, folder: string, to: SavedState, deadlineMs: number): Promise<void> {
  const socketPath = join(folder, 'out')
  const arrived = Promise.withResolvers<void>()
  arrived.promise.catch(() => undefined)
  const server = createServer(socket => {
    writeAll(socket, to).then(arrived.resolve, arrived.reject)
  })
  try {
    await new Promise<void>(resolve => server.listen(socketPath, resolve))
    await giveToQemu(socketPath)
    await withDeadline(qmp.migrate('migrate', `unix:${socketPath}`), deadlineMs, 'its state was not saved')
    await withDeadline(arrived.promise, deadlineMs, 'its state was not written')
  } finally {
    server.close()
  }
}

function writeAll(socket: Socket, { path, key }: SavedState): Promise<void> {
  const file = createWriteStream(path, { mode: 0o600 })
  return key === undefined ? pipeline(socket, file) : pipeline(sealPieces(key, socket), file)
}

/** Gives a machine the state that was sealed, piece by piece; it must not run before all of it was found to be whole. */
export async function giveSealed(path: string, key: Uint8Array, to: Writable): Promise<void> {
  // Not `pipeline`: once QEMU has read the end and closed its side, that waits for a socket which tells it no more.
  const written = (piece: Uint8Array) =>
    new Promise<void>((resolve, reject) => to.write(piece, error => (error ? reject(error) : resolve())))
  // QEMU reads one piece while the next is opened.
  let last = Promise.resolve()
  try {
    for await (const piece of openPieces(key, createReadStream(path, { highWaterMark: SEALED_PIECE }))) {
      await last
      last = written(piece)
      last.catch(() => undefined)
    }
    await last
  } catch (cause) {
    throw asStartFailure(cause)
  } finally {
    to.destroy()
  }
}
