import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { routerDirectory, routerDirectorySteps } from './directory.ts'

const NAMES = ['a', 'b', 'c']

it('gives each tenant one place, for good, and spreads them over the open shards, however many ask at once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-places-'))
  let number = 0
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 8 }), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.subarray(NAMES, { minLength: 1 }),
        async (asked, open) => {
          const file = join(folder, `${number++}.db`)
          const dbs = await Promise.all([openDb(file), openDb(file)])
          try {
            await migrate(dbs[0]!, 'router-directory', routerDirectorySteps)
            const directories = dbs.map(routerDirectory)
            for (const [at, name] of NAMES.entries()) {
              const state = open.includes(name) ? 'open' : 'closed'
              await directories[0]!.add({ name, url: name, state }, [], new Date(at))
            }
            const found = await Promise.all(
              asked.map((tenants, at) => directories[at % 2]!.place(tenants.map(one => `t${one}`))),
            )
            const last = await directories[1]!.places()
            for (const [at, tenants] of asked.entries()) {
              for (const one of tenants) expect(found[at]!.get(`t${one}`)).toBe(last.get(`t${one}`))
            }
            const counts = open.map(name => [...last.values()].filter(shard => shard === name).length)
            expect(counts.reduce((sum, n) => sum + n, 0)).toBe(last.size)
            expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
          } finally {
            for (const db of dbs) db.close()
          }
        },
      ),
      { numRuns: 15 },
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
