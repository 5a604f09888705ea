import type { ResultSet } from '@libsql/client/web'
import { expect, it } from 'vitest'
import { aheadOfServer } from './db.ts'

it('says how far the clock is ahead or behind, and nothing of what whole seconds and the way there may hide', async () => {
  const off = async (serverMs: number, beforeMs: number, afterMs: number) => {
    const times = [beforeMs, afterMs]
    const rows = [{ seconds: Math.floor(serverMs / 1000) }]
    const db = { execute: async () => ({ rows }) as unknown as ResultSet }
    return aheadOfServer(db, () => new Date(times.shift() ?? 0))
  }
  expect(await off(100_900, 100_900, 100_950)).toBe(0)
  expect(await off(100_000, 99_000, 103_000)).toBe(0)
  expect(await off(100_500, 400_500, 400_600)).toBe(299_500)
  expect(await off(100_500, 40_000, 40_100)).toBe(-59_900)
})
