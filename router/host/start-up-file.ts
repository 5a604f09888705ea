import { constants } from 'node:fs'
import { access, chmod, chown, lstat, open, readFile, readlink, rename, rm, rmdir, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { SHELLS, type Shell } from '../onboard/shell-lines.ts'
import { neededHome } from './own-service.ts'

/** A start-up file cannot be changed as it should be. The message is one sentence for the person at the terminal. */
export class StartUpFileError extends Error {
  override name = 'StartUpFileError'
}

export interface StartUpFile {
  /** As it was asked for. */
  path: string
  /** What links lead to. */
  real: string
  /** One character for each byte; undefined when there is no such file. */
  text: string | undefined
  /** Folders that a new file would need first. */
  missingFolders: number
}

const MAX_LINKS = 40

export async function readStartUpFile(path: string): Promise<StartUpFile> {
  const real = await linkTarget(path)
  const text = await textOf(real)
  return { path, real, text, missingFolders: text === undefined ? await missingAbove(real) : 0 }
}

/**
 * Puts a text in the place of the one that was read, or takes the file away, with the folders that came with it. The file is replaced as a
 * whole, keeps its mode and owner, and links to it stay; one that was changed in the meantime is left alone.
 */
export async function replaceStartUpFile(file: StartUpFile, text: string | undefined, emptyFolders = 0): Promise<void> {
  const { path, real } = file
  try {
    if ((await textOf(real)) !== file.text)
      throw new StartUpFileError(`${path} was changed by someone else just now and was left as it is: try again.`)
    if (text === undefined) {
      await rm(real)
      await removeEmpty(dirname(real), emptyFolders)
      return
    }
    const now = await stat(real).catch(() => undefined)
    if (now === undefined) await makeFolder(dirname(real))
    else await mayReplace(path, real, now.nlink)
    const temporary = join(dirname(real), `.waybill-${process.pid}-${Date.now()}`)
    try {
      const handle = await open(temporary, 'wx', 0o600)
      try {
        await handle.writeFile(Buffer.from(text, 'latin1'))
        await handle.sync()
      } finally {
        await handle.close()
      }
      // The owner first: changing it may clear bits of the mode.
      if (now !== undefined && now.uid !== process.getuid?.()) await chown(temporary, now.uid, now.gid)
      await chmod(temporary, now === undefined ? 0o666 & ~process.umask() : now.mode & 0o7777)
      await rename(temporary, real)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  } catch (cause) {
    if (cause instanceof StartUpFileError || !(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new StartUpFileError(`${path} cannot be changed: ${cause.message}.`, { cause })
  }
}

async function mayReplace(path: string, real: string, names: number): Promise<void> {
  if (names > 1)
    throw new StartUpFileError(
      `${path} has several names (hard links), which replacing it would part: edit it by hand.`,
    )
  const { mode } = await stat(real)
  const writable =
    (mode & 0o200) !== 0 &&
    (await access(real, constants.W_OK).then(
      () => true,
      () => false,
    ))
  if (!writable) throw new StartUpFileError(`${path} is write-protected, so it was left as it is.`)
}

/** Where a file is in the end; links may lead to one that is not there. */
async function linkTarget(path: string): Promise<string> {
  let at = resolve(path)
  for (let followed = 0; followed < MAX_LINKS; followed++) {
    const found = await lstat(at).catch(() => undefined)
    if (!found?.isSymbolicLink()) return at
    at = resolve(dirname(at), await readlink(at))
  }
  throw new StartUpFileError(`${path} is a link that leads in a circle.`)
}

async function textOf(real: string): Promise<string | undefined> {
  try {
    return await readFile(real, 'latin1')
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR'))
      return undefined
    throw new StartUpFileError(`${real} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}.`, {
      cause,
    })
  }
}

async function missingAbove(path: string): Promise<number> {
  let missing = 0
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    if ((await stat(at).catch(() => undefined)) !== undefined) break
    missing++
  }
  return missing
}

async function removeEmpty(folder: string, count: number): Promise<void> {
  let at = folder
  for (let left = count; left > 0; left--, at = dirname(at)) {
    // A folder that is in use by now is not empty, and stays.
    if (
      !(await rmdir(at).then(
        () => true,
        () => false,
      ))
    )
      return
  }
}

type Vars = Readonly<Record<string, string | undefined>>

/** The shell of this account by the name of its program; undefined for one that we cannot write lines for. */
export function detectShell(vars: Vars): { path: string; shell: Shell | undefined } {
  const path = vars.SHELL || shellOfAccount() || ''
  return { path, shell: SHELLS.find(name => name === basename(path)) }
}

function shellOfAccount(): string | null {
  try {
    return userInfo().shell
  } catch {
    // This account is in no list of accounts.
    return null
  }
}

/** The file that each interactive shell reads when it starts. */
export function startUpPath(shell: Shell, vars: Vars): string {
  const home = neededHome(vars)
  switch (shell) {
    case 'bash':
      // Terminals of macOS open login shells, which read no .bashrc.
      return join(home, process.platform === 'darwin' ? '.bash_profile' : '.bashrc')
    case 'zsh':
      return join(vars.ZDOTDIR || home, '.zshrc')
    case 'fish':
      return join(vars.XDG_CONFIG_HOME || join(home, '.config'), 'fish', 'config.fish')
  }
}

/** Every file that onboard may have written to, also under settings that have changed since. */
export function allStartUpPaths(vars: Vars): string[] {
  const { ZDOTDIR: _, XDG_CONFIG_HOME: __, ...plain } = vars
  return [...new Set(SHELLS.flatMap(shell => [startUpPath(shell, vars), startUpPath(shell, plain)]))]
}

/** Where a program is found, as a shell would. */
export async function findProgram(name: string, vars: Vars): Promise<string | undefined> {
  for (const folder of (vars.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const path = join(folder, name)
    const runs = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false,
    )
    if (runs) return path
  }
  return undefined
}
