import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { keyLeases } from './key-leases.ts'

const clock = manualClock(new Date('2026-01-01T00:00:00Z'))
const leasesOf = (db: Db, holder: string) => keyLeases({ db, clock, holder, leaseMs: 60_000 })
const holders = Array.from({ length: 8 }, (_, n) => `plane-${n}`)

it('lets any number of processes serve a store in a file', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  for (const holder of holders) await leasesOf(db, holder).serve()
  db.close()
})

if (await sqldAvailable()) {
  let server: Sqld
  let db: Db
  beforeAll(async () => {
    server = await startSqld()
    db = await openDb(server.primaryUrl)
    await migrate(db, 'runtime', runtimeSteps)
  })
  afterAll(async () => {
    await db?.close()
    await server?.stop()
  })

  it('lets four write to a server, of however many come at once, and tells the others why not', async () => {
    const told = await Promise.allSettled(holders.map(holder => leasesOf(db, holder).serve()))
    const refused = told.flatMap(one => (one.status === 'rejected' ? [String(one.reason)] : []))
    expect(refused.length).toBe(4)
    expect(new Set(refused).size).toBe(1)
    expect(refused[0]).toMatch(/^DbOpenError: 4 processes write to this database already.*end one of them/)

    const inside = holders.filter((_, n) => told[n]?.status === 'fulfilled')
    const outside = holders.find(holder => !inside.includes(holder)) ?? ''
    // Who is among them stays so.
    for (const holder of inside) await leasesOf(db, holder).serve()
    await leasesOf(db, inside[0] ?? '').release()
    await leasesOf(db, outside).serve()
    await expect(leasesOf(db, inside[0] ?? '').serve()).rejects.toThrow(/4 processes/)
    clock.advance(61_000)
    await leasesOf(db, inside[0] ?? '').serve()
  })
}
