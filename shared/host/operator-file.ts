import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { chmod, type FileHandle, open, rename, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EnvError } from '../env/read-env.ts'

/** A pipe without a writer would be waited for without an end. */
const PIPE_MS = 5000
const PIPE_BYTES = 16 * 1024 * 1024
const { O_RDONLY, O_NONBLOCK } = constants

/**
 * The home folder of this account. An account that is in no list of accounts, as containers and `User=` of a bare number have them, has one only
 * where HOME names it: Node throws for the others.
 */
export function homeFolder(
  vars: Readonly<Record<string, string | undefined>>,
  ofAccount: () => string = homedir,
): string | undefined {
  if (vars.HOME) return vars.HOME
  try {
    return ofAccount()
  } catch {
    return undefined
  }
}

/**
 * Makes the file, empty, for this account alone. Where that cannot be done, opening it fails with the reason. A file that is there is not
 * opened: closing one takes from the whole process the locks that a database has on it.
 */
export function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // It is there, or opening it says why not.
  }
}

/** Takes a file that is there from the other accounts of this machine. One that is not ours, or may not be changed, stays as it is. */
export async function takeFromOthers(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found && (found.mode & 0o077) !== 0) await chmod(path, found.mode & 0o700).catch(() => undefined)
}

/** Gives a file that is complete its name, and returns once both are on the disk. */
export async function putInPlace(part: string, place: string): Promise<void> {
  await syncPath(part)
  await rename(part, place)
  await syncPath(dirname(place))
}

/** Returns once a file, or the names in a folder, are on the disk. Some file systems sync no folders (EINVAL). */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path)
  try {
    await handle.sync().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EINVAL') throw error
    })
  } finally {
    await handle.close()
  }
}

/** What is in a file that an operator names; of a pipe, such as `<(…)` of a shell, what is written to it in time. */
export async function readOperatorFile(path: string): Promise<Buffer> {
  const file = await open(path, O_RDONLY | O_NONBLOCK)
  try {
    const found = await file.stat()
    if (found.isFile()) return await file.readFile()
    if (found.isFIFO()) return await readPipe(file, path)
    throw new EnvError(`${path} is a folder or a device: name a file`)
  } finally {
    await file.close()
  }
}

export const readOperatorText = async (path: string): Promise<string> => (await readOperatorFile(path)).toString('utf8')

async function readPipe(file: FileHandle, path: string): Promise<Buffer> {
  const parts: Buffer[] = []
  const until = performance.now() + PIPE_MS
  for (let bytes = 0; performance.now() < until && bytes <= PIPE_BYTES; ) {
    const part = await file.read().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EAGAIN') throw error
    })
    if (part && part.bytesRead > 0) {
      parts.push(part.buffer.subarray(0, part.bytesRead))
      bytes += part.bytesRead
    } else if (part && bytes > 0) return Buffer.concat(parts)
    else await wait(20)
  }
  throw new EnvError(
    `${path} is a pipe that was not written to its end in ${PIPE_MS / 1000} s, or with more than 16 MiB: name a file, or a pipe with a writer`,
  )
}

/** The same at once, and of a file alone. */
export function readRegular(path: string): Buffer {
  const file = openSync(path, O_RDONLY | O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new EnvError(`${path} is a folder, a pipe or a device: name a file`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}
