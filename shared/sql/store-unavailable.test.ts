import { expect, it } from 'vitest'
import { openDb } from '../host/open-libsql.ts'
import { isStoreUnavailable, markUnavailable } from './db-fault.ts'

it('tells a server that is not reached from a statement that is refused, through every wrapping', async () => {
  const lost = new TypeError('fetch failed')
  await expect(markUnavailable(() => Promise.reject(lost))).rejects.toBe(lost)
  expect(isStoreUnavailable(lost)).toBe(true)
  expect(isStoreUnavailable(new Error('a run stopped', { cause: lost }))).toBe(true)

  const refused = Object.assign(new Error('no such table'), { code: 'SQLITE_ERROR' })
  await expect(markUnavailable(() => Promise.reject(refused))).rejects.toBe(refused)
  expect(isStoreUnavailable(refused)).toBe(false)
  // The words of a failed connection alone are not enough: it may have been another connection.
  expect(isStoreUnavailable(new TypeError('fetch failed'))).toBe(false)
})

it('does not call a file away', async () => {
  const db = await openDb(':memory:')
  const error: unknown = await db.execute('select * from nothing').catch((error: unknown) => error)
  expect([error instanceof Error, isStoreUnavailable(error)]).toEqual([true, false])
  db.close()
})
