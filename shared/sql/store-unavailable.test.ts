import { expect, it } from 'vitest'
import { openDb } from '../host/open-libsql.ts'
import { isStoreAway, noteAway } from './store-unavailable.ts'

it('tells a server that is not reached from a statement that is refused, through every wrapping', async () => {
  const lost = new TypeError('fetch failed')
  await expect(noteAway(() => Promise.reject(lost))).rejects.toBe(lost)
  expect(isStoreAway(lost)).toBe(true)
  expect(isStoreAway(new Error('a run stopped', { cause: lost }))).toBe(true)

  const refused = Object.assign(new Error('no such table'), { code: 'SQLITE_ERROR' })
  await expect(noteAway(() => Promise.reject(refused))).rejects.toBe(refused)
  expect(isStoreAway(refused)).toBe(false)
  // The words of a failed connection alone are not enough: it may have been somebody else's.
  expect(isStoreAway(new TypeError('fetch failed'))).toBe(false)
})

it('does not call a file away', async () => {
  const db = await openDb(':memory:')
  const error: unknown = await db.execute('select * from nothing').catch((error: unknown) => error)
  expect([error instanceof Error, isStoreAway(error)]).toEqual([true, false])
  db.close()
})
