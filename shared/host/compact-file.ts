import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Db, rowsOf } from '../sql/db.ts'

/** Pages of 8 KiB that go back in one transaction; who writes beside it waits for no more. */
const PAGES = 256

interface Room {
  bytes: number
  free: number
  /** 2: free pages can be given back some at a time. */
  mode: number
}

async function room(db: Db): Promise<Room> {
  const found = await db.execute(`select page_count * page_size as bytes, freelist_count as free, auto_vacuum as mode
    from pragma_page_count, pragma_page_size, pragma_freelist_count, pragma_auto_vacuum`)
  return rowsOf<Room>(found)[0]!
}

export interface Compacted {
  before: number
  after: number
  /** Undefined, or why the file is not that small yet. */
  held: string | undefined
}

/** So long what is deleted waits for readers to end. */
const READERS_MS = 10_000
const LOOK_MS = 250
const HELD =
  'the log beside the file (-wal) could not be emptied, since another program reads the store without a pause (a replicating backup does): the file ' +
  'has its old size, and the log what was deleted, until that program has ended and this command has run once more'

/**
 * Gives the room that deleted rows left in a file back to the disk, while others read and write. After each step the lock is left alone for as long
 * as the step held it. A file that was not made here is written anew first, in one transaction that others wait for.
 */
export async function compactFile(
  db: Db,
  { pages = PAGES, between = pause }: { pages?: number; between?: (ms: number) => Promise<unknown> } = {},
): Promise<Compacted> {
  const { bytes, mode } = await room(db)
  if (mode !== 2) await writeAnew(db)
  for (let { free } = await room(db); free > 0; ) {
    const began = performance.now()
    await db.client.executeMultiple(`pragma incremental_vacuum(${pages})`)
    const left = (await room(db)).free
    if (left >= free) break
    free = left
    await between(performance.now() - began)
  }
  const emptied = await emptyLog(db, between)
  return { before: bytes, after: (await room(db)).bytes, held: emptied ? undefined : HELD }
}

/** Moves all that stands in the log into the file. A reader that began before keeps what it reads there; most end in a moment. */
async function emptyLog(db: Db, between: (ms: number) => Promise<unknown>): Promise<boolean> {
  for (let waited = 0; ; waited += LOOK_MS) {
    const [done] = rowsOf<{ busy: number }>(await db.execute('pragma wal_checkpoint(truncate)'))
    if (done?.busy === 0 || waited >= READERS_MS) return done?.busy === 0
    await between(LOOK_MS)
  }
}

/** The copy is made beside the file: in memory, where temporary tables are, it would take as much as the store. */
async function writeAnew(db: Db): Promise<void> {
  const found = await db.execute("select file from pragma_database_list where name = 'main'")
  // SQLite's own variable, unless the operator has set it.
  Object.assign(process.env, { SQLITE_TMPDIR: dirname(rowsOf<{ file: string }>(found)[0]!.file), ...process.env })
  await db.client.executeMultiple('pragma temp_store = file; pragma auto_vacuum = incremental; vacuum')
}

interface Output {
  write(text: string): unknown
}

/** What a command says of it, and its exit code. */
export function reportCompacted(
  { before, after, held }: Compacted,
  { stdout, stderr }: { stdout: Output; stderr: Output },
): number {
  stdout.write(`${before} bytes before, ${after} ${held === undefined ? 'now' : 'in use'}\n`)
  if (held === undefined) return 0
  stderr.write(`${held}\n`)
  return 1
}
