import { type FileHandle, open } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { withDeadline } from '../with-deadline.ts'
import { giveToQemu } from './qemu-process.ts'
import type { Qmp } from './qmp.ts'

/**
 * Writes the state of a stopped machine into a file of ours. QEMU may start no program, and takes no number for a file
 * that it is to write, so it connects to a socket in the machine's own folder.
 */
export async function saveState(qmp: Qmp, folder: string, to: string, deadlineMs: number): Promise<void> {
  const socketPath = join(folder, 'out')
  const file = await open(to, 'w', 0o600)
  const arrived = Promise.withResolvers<void>()
  arrived.promise.catch(() => undefined)
  const server = createServer(socket => {
    writeAll(socket, file).then(arrived.resolve, arrived.reject)
  })
  try {
    await new Promise<void>(resolve => server.listen(socketPath, resolve))
    await giveToQemu(socketPath)
    await withDeadline(qmp.migrate('migrate', `unix:${socketPath}`), deadlineMs, 'its state was not saved')
    await withDeadline(arrived.promise, deadlineMs, 'its state was not written')
  } finally {
    server.close()
    await file.close()
  }
}

async function writeAll(from: AsyncIterable<Uint8Array>, file: FileHandle): Promise<void> {
  for await (const chunk of from) await file.writeFile(chunk)
}
