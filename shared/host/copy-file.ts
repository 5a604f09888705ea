import { chmod, rename, rm, stat } from 'node:fs/promises'
import type { Db } from '../sql/db.ts'
import { RefusedError } from './refused-error.ts'

/** A backup replaces nothing. */
export async function refuseExisting(path: string, what: 'file' | 'folder'): Promise<void> {
  if (await stat(path).catch(() => undefined)) throw new RefusedError(`${path} is there already: name another ${what}`)
}

/** A copy of one moment: complete, or not there at all. Others write meanwhile; their commits stay in the log of the store until it is made. */
export async function copyOf(db: Db, file: string): Promise<number> {
  const part = `${file}.part`
  await rm(part, { force: true })
  await db.execute({ sql: 'vacuum into ?', args: [part] })
  await chmod(part, 0o600)
  await rename(part, file)
  return (await stat(file)).size
}
