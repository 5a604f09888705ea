import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { engineFixture, says } from './testing/engine-fixture.ts'

/** A server answers with 10 MB at most; what one claim takes may be more. */
const RUNS = 12
const BYTES = 1_000_000

if (await sqldAvailable()) {
  describe('runs of a libSQL server whose inputs are larger together than one answer', () => {
    let server: Sqld
    beforeAll(async () => {
      server = await startSqld()
    })
    afterAll(() => server?.stop())

    it('are claimed together, and each is executed once', async () => {
      const asked: string[] = []
      const made = await engineFixture({
        url: server.primaryUrl,
        async ask({ messages: [first] }) {
          asked.push(first?.role === 'user' ? first.text.slice(0, 8) : '')
          return says('done')
        },
      })
      try {
        const ids: string[] = []
        for (let nth = 0; nth < RUNS; nth++) {
          ids.push(await made.create({ prompt: `${String(nth).padStart(8)}${'x'.repeat(BYTES)}` }))
        }
        await made.engine.start()
        for (const id of ids) expect(await made.until(id, undefined, 20_000)).toMatchObject({ status: 'succeeded' })
        expect(asked.toSorted()).toEqual(ids.map((_, nth) => String(nth).padStart(8)))
        const { rows } = await made.db.execute('select max(recoveries) as recoveries, max(epoch) as epoch from runs')
        expect(rows[0]).toMatchObject({ recoveries: 0, epoch: 1 })
      } finally {
        await made.close()
      }
    }, 60_000)
  })
}
