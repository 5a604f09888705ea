import { openWithWriteThread } from '../shared/host/write-thread.ts'
import type { Db } from '../shared/sql/db.ts'

/** A file whose commits a thread makes, once it does; the end of the thread ends the test. */
export async function openThreaded(path: string): Promise<Db> {
  const db = await openWithWriteThread(path, {
    lost(why) {
      throw new Error(why)
    },
  })
  await db.ready
  return db
}
