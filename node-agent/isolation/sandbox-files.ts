import { posix } from 'node:path'
import { collect } from './byte-queue.ts'
import { type Exec, type ExecRequest, type Exit, type FileEntry, IsolationError } from './driver.ts'

/** Time for one file operation; the workspace is memory, so this is long. */
const FILE_DEADLINE_MS = 20_000
const MAX_LISTING_BYTES = 1024 * 1024

/**
 * File operations as commands of the agent, run with the rights of any command inside the sandbox: the host opens no
 * path that a guest could have turned into a link.
 */
export function sandboxFiles(exec: (request: ExecRequest) => Promise<Exec>, deadlineMs = FILE_DEADLINE_MS) {
  async function run(argv: [string, ...string[]], outputBytes: number, stdin?: Uint8Array): Promise<Uint8Array> {
    const done = await exec({ argv, deadlineMs, outputBytes, ...(stdin && { stdin }) })
    const [stdout, stderr, exit] = await Promise.all([collect(done.stdout), collect(done.stderr), done.exit])
    if (exit.kind === 'code' && exit.code === 0) return stdout
    throw failure(argv[1]!, exit, new TextDecoder().decode(stderr).trim())
  }
  return {
    async writeFile(path: string, content: Uint8Array, { executable = false } = {}): Promise<void> {
      await run(['@put', inWorkspace(path), executable ? '755' : '644'], 4096, content)
    },
    async readFile(path: string, maxBytes: number): Promise<Uint8Array> {
      return run(['@get', inWorkspace(path)], maxBytes)
    },
    async listFiles(path: string): Promise<FileEntry[]> {
      return readListing(await run(['@list', inWorkspace(path)], MAX_LISTING_BYTES))
    },
  }
}

function failure(path: string, exit: Exit, said: string): IsolationError {
  if (exit.kind === 'limit') {
    return new IsolationError('file_failed', `${path}: ${exit.detail}.`, { limit: exit.limit })
  }
  return new IsolationError('file_failed', said === '' ? `${path}: the operation did not end well.` : `${said}.`)
}

/** The path inside, if it names something in the workspace. */
export function inWorkspace(path: string): string {
  const whole = posix.resolve('/work', path)
  if (path.includes('\0') || (whole !== '/work' && !whole.startsWith('/work/'))) {
    throw new IsolationError('file_failed', `The path ${JSON.stringify(path)} is outside the workspace /work.`)
  }
  return whole
}

const KINDS: Readonly<Record<string, FileEntry['kind']>> = { f: 'file', d: 'folder', l: 'link', o: 'other' }

/** Kind, size and name of each entry, ended by NUL; what a guest made up is refused. */
export function readListing(bytes: Uint8Array): FileEntry[] {
  const fields = new TextDecoder().decode(bytes).split('\0')
  fields.pop()
  const entries: FileEntry[] = []
  for (let at = 0; at < fields.length; at += 3) {
    const [kind, size, name] = fields.slice(at, at + 3)
    if (name === undefined || !Object.hasOwn(KINDS, kind!) || !/^\d{1,15}$/.test(size!)) {
      throw new IsolationError('file_failed', 'The sandbox gave a list of files that cannot be read.')
    }
    entries.push({ name, kind: KINDS[kind!]!, bytes: Number(size) })
  }
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
