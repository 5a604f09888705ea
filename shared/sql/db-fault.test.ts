import { describe, expect, test } from 'vitest'
import { dbFault, retryBusy } from './db-fault.ts'

const coded = (code: string, message = 'x') => Object.assign(new Error(message), { code })

describe('the fault of an error', () => {
  test.each([
    ['busy', coded('SQLITE_BUSY')],
    ['busy', coded('TRANSACTION_ACTIVE')],
    ['busy', new Error('database is locked')],
    ['statement', coded('SQLITE_CONSTRAINT')],
    ['statement', coded('SQLITE_UNKNOWN', 'SQLite error: no such table: t')],
    ['statement', new TypeError('things.size expected integer, got 1.5.')],
    ['statement', new RangeError('bigint is too large')],
    // The commit may have happened: never repeated.
    ['unknown', coded('SERVER_ERROR')],
    ['unknown', coded('HRANA_CLOSED_ERROR')],
    ['unknown', coded('TRANSACTION_TIMEOUT')],
    ['unknown', coded('SQLITE_IOERR')],
    ['unknown', coded('SQLITE_FULL')],
    ['unknown', coded('ECONNRESET')],
    ['unknown', new TypeError('fetch failed')],
    ['unknown', new Error('Network connection lost.')],
    ['unknown', coded('', 'ConnectionFailed("…")')],
  ])('is %s for %s', (fault, error) => {
    expect(dbFault(error)).toBe(fault)
  })
})

test('busy is waited for with growing pauses, anything else is passed on at once', async () => {
  const waits: number[] = []
  const wait = async (ms: number) => {
    waits.push(ms)
  }
  await expect(retryBusy(() => Promise.reject(coded('SQLITE_BUSY')), { retries: 5, wait })).rejects.toThrow()
  expect(waits).toHaveLength(5)
  for (const [index, ms] of waits.entries()) {
    const ceiling = Math.min(500, 20 * 2 ** index)
    expect(ms).toBeGreaterThanOrEqual(ceiling / 2)
    expect(ms).toBeLessThanOrEqual(ceiling)
  }
  let calls = 0
  const refused = retryBusy(
    () => {
      calls++
      return Promise.reject(coded('SERVER_ERROR'))
    },
    { wait },
  )
  await expect(refused).rejects.toThrow()
  expect(calls).toBe(1)
})
