import { type FileHandle, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../../shared/host/operator-file.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { groupCommit } from '../../shared/sql/group-commit.ts'
import { workQueue } from '../../shared/time/work-queue.ts'
import type { Spill, SpillPart } from '../traces/spill.ts'

/** A larger file is set aside, so that draining reads no more than this at once. */
const PART_BYTES = 32 * 1024 * 1024
const MAX_LINES = 1024
const MAX_PENDING = 100_000

/**
 * The spill file of a store, `<db>.spill.jsonl`. Several processes may share it: lines are appended whole, and a file is set aside under
 * a name of its own before it is read. An append looks afterwards whether its file was set aside meanwhile, and then appends once more,
 * so no line is missed (a line may be read twice, which the drain tells by its trace_id).
 */
export async function openSpillFile(dbPath: string): Promise<Spill & { close(): Promise<void> }> {
  const path = `${dbPath}.spill.jsonl`
  const folder = dirname(path)
  const { asideNames, sizes } = filesBeside(dbPath)
  let file: { handle: FileHandle; ino: bigint } | undefined
  let current = 0
  let setAside = 0

  /** One at a time: a file must not be set aside and closed under a write of this process. */
  const { run: alone } = workQueue()

  async function opened() {
    if (file !== undefined) return file
    const handle = await open(path, 'a', 0o600)
    await syncPath(folder)
    const { ino, size } = await handle.stat({ bigint: true })
    current = Number(size)
    file = { handle, ino }
    return file
  }

  async function closeFile() {
    const { handle } = file ?? {}
    file = undefined
    await handle?.close()
  }

  async function write(lines: readonly string[]): Promise<void> {
    // The leading line end closes a line that a dying process left half written.
    const bytes = new TextEncoder().encode(`\n${lines.join('\n')}\n`)
    for (;;) {
      const { handle, ino } = await opened()
      try {
        await handle.appendFile(bytes)
        await handle.datasync()
      } catch (error) {
        await closeFile()
        throw error
      }
      current += bytes.length
      const now = await stat(path, { bigint: true }).catch(() => undefined)
      if (now?.ino === ino) break
      await closeFile()
    }
    if (current > PART_BYTES) await rotate()
  }

  /** Renames the file, if it holds anything. */
  async function rotate(): Promise<void> {
    const size = await sizes([basename(path)])
    if (size === 0) return
    // The name sorts by time; the rename either happened for this process or for another one.
    await rename(path, join(folder, `${basename(dbPath)}.spill.${uuidv7()}.jsonl`)).catch(ignoreMissing)
    await syncPath(folder)
    await closeFile()
    current = 0
    setAside += size
  }

  const writer = groupCommit<string, void>({
    async write(lines) {
      await alone(() => write(lines))
      return lines.map(() => undefined)
    },
    maxRows: MAX_LINES,
    maxPending: MAX_PENDING,
    // A failed write may have left part of itself; the lines are refused, never written twice blindly.
    fault: () => 'unknown',
  })

  setAside = await sizes(await asideNames())
  current = await sizes([basename(path)])

  return {
    append: line => writer.append(line),
    async parts(): Promise<SpillPart[]> {
      await alone(rotate)
      const names = await asideNames()
      setAside = await sizes(names)
      const removed = (size: number) => {
        setAside = Math.max(0, setAside - size)
      }
      return names.map(name => partOf(join(folder, name), removed))
    },
    bytes: () => current + setAside,
    async close() {
      await writer.close()
      await alone(closeFile)
    },
  }
}

/** The files that were set aside beside a store, and how large files beside it are. */
function filesBeside(dbPath: string) {
  const folder = dirname(dbPath)
  const aside = new RegExp(`^${escaped(basename(dbPath))}\\.spill\\.[0-9a-f-]{36}\\.jsonl$`)
  return {
    asideNames: async (): Promise<string[]> => (await readdir(folder)).filter(name => aside.test(name)).sort(),
    async sizes(names: readonly string[]): Promise<number> {
      const found = await Promise.all(names.map(name => stat(join(folder, name)).catch(() => undefined)))
      return found.reduce((sum, one) => sum + (one?.size ?? 0), 0)
    },
  }
}

/** A file that was set aside. `removed` hears how large it was. */
const partOf = (path: string, removed: (size: number) => void): SpillPart => ({
  name: basename(path),
  read: () => readFile(path, 'utf8'),
  async remove() {
    const size = await stat(path).then(
      found => found.size,
      () => 0,
    )
    await rm(path, { force: true })
    await syncPath(dirname(path))
    removed(size)
  },
})

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
