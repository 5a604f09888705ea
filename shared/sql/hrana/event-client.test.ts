import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { eventClient } from './event-client.ts'
import { fetchTransport } from './fetch-transport.ts'
import { serverAddress } from './server-address.ts'
import type { ServerClient } from './server-client.ts'
import type { HranaTransport } from './stream.ts'

if (await sqldAvailable()) {
  describe('a client whose calls end with the event that made them', () => {
    let server: Sqld
    let inner: HranaTransport
    let client: ServerClient
    let opened = 0
    let requests = 0
    /** Requests that hold this are never answered, as of an event that has ended. */
    let dead: string | undefined

    beforeAll(async () => {
      server = await startSqld()
      const address = serverAddress(server.primaryUrl)
      inner = fetchTransport(address)
      const transport: HranaTransport = {
        post(url, body) {
          requests++
          if (body.startsWith('{"baton":null')) opened++
          if (dead !== undefined && body.includes(dead)) return new Promise(() => undefined)
          return inner.post(url, body)
        },
        close: () => inner.close(),
      }
      client = eventClient({ url: address.url, transport })
      await client.execute('create table facts (n integer primary key) strict')
    })
    beforeEach(() => {
      opened = 0
      requests = 0
    })
    afterEach(async () => {
      dead = undefined
      await client.execute('delete from facts')
    })
    afterAll(async () => {
      await client?.close()
      await server?.stop()
    })

    const numbers = async () => (await client.execute('select n from facts order by n')).rows.map(({ n }) => Number(n))

    it('opens one stream for calls that follow each other, and each is one request', async () => {
      await client.execute('select 1')
      opened = 0
      requests = 0
      for (let n = 1; n <= 10; n++) {
        await client.batch([{ sql: 'insert into facts values (?)', args: [n] }], 'write')
        expect(await numbers()).toHaveLength(n)
      }
      expect([opened, requests]).toEqual([0, 20])
    })

    it('waits in no call for another, whose event may have ended', async () => {
      dead = 'values (7)'
      void client.execute('insert into facts values (7)')
      void client.batch([`select 'values (7)'`], 'read')
      await client.execute('insert into facts values (8)')
      const [rows] = await client.batch(['select n from facts'], 'read')
      expect(rows?.rows.map(({ n }) => n)).toEqual([8])
      await Promise.all(Array.from({ length: 20 }, (_, n) => client.execute(`insert into facts values (${n + 10})`)))
      expect(await numbers()).toHaveLength(21)
    })

    it('writes all of a transaction or none of it, and a stream that saw a failure serves the next call', async () => {
      const twice = client.batch(['insert into facts values (1)', 'insert into facts values (1)'], 'write')
      await expect(twice).rejects.toMatchObject({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) })
      expect(await numbers()).toEqual([])
      await client.execute('insert into facts values (1)')
      expect(await numbers()).toEqual([1])
    })

    it('keeps a few streams of those that many events opened at once', async () => {
      await Promise.all(Array.from({ length: 12 }, () => client.execute('select 1')))
      opened = 0
      await Promise.all(Array.from({ length: 4 }, () => client.execute('select 1')))
      expect(opened).toBe(0)
    })
  })
}
