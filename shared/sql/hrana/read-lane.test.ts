import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { poolTransport } from '../../host/pool-transport.ts'
import { type ReadLane, readLane } from './read-lane.ts'
import { serverAddress } from './server-address.ts'
import { type HranaTransport, hranaStream } from './stream.ts'

if (await sqldAvailable()) {
  describe('reads that are sent together', () => {
    let server: Sqld
    let transport: HranaTransport
    let lane: ReadLane
    let sent: string[][] = []

    beforeAll(async () => {
      server = await startSqld()
      const address = serverAddress(server.primaryUrl)
      transport = await poolTransport(address)
      const counted: HranaTransport = {
        post(url, body) {
          sent.push((JSON.parse(body) as { requests: { type: string }[] }).requests.map(({ type }) => type))
          return transport.post(url, body)
        },
        close: () => transport.close(),
      }
      lane = readLane(hranaStream({ url: address.url, transport: counted }))
    })
    beforeEach(() => {
      sent = []
    })
    afterAll(async () => {
      await lane?.close()
      await transport?.close()
      await server?.stop()
    })

    const read = (sql: string) =>
      lane.execute({ sql, want_rows: true }).then(({ rows }) => rows.map(row => ({ ...row })))
    const much = (letter: string) =>
      `with recursive c (n) as (select 1 union all select n + 1 from c where n < 7000)
        select n, '${letter}' || hex(zeroblob(500)) as text from c`

    it('cost the server one request of its own', async () => {
      expect(await Promise.all([read('select 1 as n'), read('select 2 as n'), read('select 3 as n')])).toEqual([
        [{ n: 1 }],
        [{ n: 2 }],
        [{ n: 3 }],
      ])
      expect(sent).toEqual([['batch']])
    })

    it('fail each by itself, whether the server reads them or not', async () => {
      for (const wrong of ['select n from nowhere', 'select from where']) {
        const [before, failed, after] = await Promise.allSettled([
          read('select 1 as n'),
          read(wrong),
          read('select 3 as n'),
        ])
        expect(before).toMatchObject({ value: [{ n: 1 }] })
        expect(failed).toMatchObject({ status: 'rejected' })
        expect(after).toMatchObject({ value: [{ n: 3 }] })
      }
    })

    it('are answered one by one where the answers are too large together', async () => {
      const [a, b] = await Promise.all([read(much('a')), read(much('b'))])
      expect([a.length, b.length, a[0]?.text, b[6999]?.n]).toEqual([7000, 7000, `a${'00'.repeat(500)}`, 7000])
      expect(sent).toEqual([['batch'], ['execute', 'execute', 'execute']])
      // What broke off keeps no old moment open.
      expect(await read('select 1 as n')).toEqual([{ n: 1 }])
    })
  })
}
