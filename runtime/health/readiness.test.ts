import { afterEach, expect, it, vi } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { readinessOf } from './readiness.ts'

afterEach(() => void vi.useRealTimers())

it('says within seconds that a store gives no answer, and that it is ready again', async () => {
  const db = await openDb(':memory:')
  let stopped = true
  const readiness = readinessOf({
    db: { ...db, execute: statement => (stopped ? new Promise(() => undefined) : db.execute(statement)) },
    ready: async () => undefined,
    checkKey: undefined,
    phase: () => 'ready',
  })
  vi.useFakeTimers()
  const late = readiness()
  await vi.advanceTimersByTimeAsync(4000)
  expect(await late).toEqual({ status: 'failing', checks: { database: 'no answer within 4 s', migrations: 'ok' } })
  stopped = false
  vi.useRealTimers()
  expect(await readiness()).toEqual({ status: 'ready', checks: { database: 'ok', migrations: 'ok' } })
  db.close()
})
