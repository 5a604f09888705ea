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
}

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
  await db.execute('pragma wal_checkpoint(truncate)')
  return { before: bytes, after: (await room(db)).bytes }
}

/** The copy is made beside the file: in memory, where temporary tables are, it would take as much as the store. */
async function writeAnew(db: Db): Promise<void> {
  const found = await db.execute("select file from pragma_database_list where name = 'main'")
  // SQLite's own variable, unless the operator has set it.
  Object.assign(process.env, { SQLITE_TMPDIR: dirname(rowsOf<{ file: string }>(found)[0]!.file), ...process.env })
  await db.client.executeMultiple('pragma temp_store = file; pragma auto_vacuum = incremental; vacuum')
}
