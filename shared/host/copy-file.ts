import { rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Db } from '../sql/db.ts'
import { RefusedError } from './known-fault.ts'
import { putInPlace } from './operator-file.ts'

/** A backup replaces nothing. */
export async function refuseExisting(path: string, what: 'file' | 'folder'): Promise<void> {
  if (await stat(path).catch(() => undefined)) throw new RefusedError(`${path} is there already: name another ${what}`)
}

/** A copy of one moment: complete, or not there at all. Others write meanwhile; their commits stay in the log of the store until it is made. */
export async function copyOf(db: Db, file: string): Promise<number> {
  const part = `${file}.part`
  const remove = () => Promise.all([part, `${part}-journal`].map(name => rm(name, { force: true })))
  await remove()
  // Made empty first, so that no other account can read it at any time.
  await writeFile(part, '', { mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new RefusedError(`${dirname(file)} is not there: make the folder first`) : error
  })
  try {
    await db.execute({ sql: 'vacuum into ?', args: [part] })
    await putInPlace(part, file)
  } catch (error) {
    // On a full disk it would take the room that the store needs.
    await remove()
    throw error
  }
  return (await stat(file)).size
}
