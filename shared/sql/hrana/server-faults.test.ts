import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Client } from '@libsql/client/web'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { poolTransport } from '../../host/pool-transport.ts'
import { dbFault } from '../db-fault.ts'
import { serverAddress } from './server-address.ts'
import { serverClient } from './server-client.ts'

/** A way to a server that can be cut: from then on nothing goes back, and what has been sent has arrived. */
async function lossyWay(to: string) {
  const { port } = new URL(to)
  const open = new Set<Socket>()
  let losing = false
  const proxy = createServer(near => {
    const far = connect(Number(port), '127.0.0.1')
    for (const one of [near, far]) {
      open.add(one)
      one.on('error', () => undefined)
      one.on('close', () => open.delete(one))
    }
    near.pipe(far)
    far.on('data', chunk => (losing ? near.destroy() : near.write(chunk)))
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    lose(on: boolean) {
      losing = on
    },
    async close() {
      for (const one of open) one.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}

async function clientOf(url: string): Promise<Client> {
  const address = serverAddress(url)
  return serverClient({ url: address.url, transport: await poolTransport(address) })
}

const JSON_TYPE = { 'content-type': 'application/json' }
const failure = (written: Promise<unknown>) => written.then(() => undefined).catch((error: unknown) => error)
const numbers = async (client: Client) =>
  (await client.execute('select n from facts order by n')).rows.map(({ n }) => Number(n))

if (await sqldAvailable()) {
  describe('a server that fails', () => {
    let server: Sqld
    let client: Client
    beforeAll(async () => {
      server = await startSqld()
      client = await clientOf(server.primaryUrl)
      await client.execute('create table facts (n integer primary key) strict')
    })
    afterAll(async () => {
      await client?.close()
      await server?.stop()
    })

    it('does not know the streams of before its restart, which costs no caller anything', async () => {
      await client.execute('insert into facts values (1)')
      expect(await numbers(client)).toEqual([1])
      await server.down()
      await server.back()
      const [, read] = await Promise.all([client.execute('insert into facts values (2)'), numbers(client)])
      expect(read.length).toBeGreaterThan(0)
      expect(await numbers(client)).toEqual([1, 2])
    })

    it('behind a proxy that takes no large request: that is refused for good, and what was sent beside it is written', async () => {
      const near = createHttpServer(async (request, response) => {
        const body = await buffer(request)
        const answer =
          body.length > 100_000
            ? new Response('too large', { status: 413 })
            : await fetch(server.primaryUrl + request.url, { method: 'POST', body, headers: JSON_TYPE })
        response.writeHead(answer.status, JSON_TYPE).end(await answer.text())
      })
      await once(near.listen(0, '127.0.0.1'), 'listening')
      const before = await clientOf(`http://127.0.0.1:${(near.address() as AddressInfo).port}`)
      await before.execute('create table texts (n integer primary key, body text not null) strict')
      const put = (n: number, length: number) =>
        before.batch([{ sql: 'insert into texts values (?, ?)', args: [n, 'x'.repeat(length)] }], 'write')
      const written = await Promise.allSettled([put(1, 10), put(2, 200_000), put(3, 10), put(4, 10)])
      expect(written.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
      const refused = await failure(put(2, 200_000))
      expect([dbFault(refused), String(refused)]).toEqual(['statement', expect.stringContaining('status 413')])
      expect((await before.execute('select n from texts order by n')).rows.map(({ n }) => n)).toEqual([1, 3, 4])
      await before.close()
      near.close()
    })

    it('is killed in the middle of groups: what was confirmed is there, and no unit is there in half', async () => {
      await client.execute(
        'create table pairs (unit integer not null, part integer not null, primary key (unit, part)) strict',
      )
      const confirmed: number[] = []
      const doubtful: number[] = []
      let stop = false
      const writer = async (first: number) => {
        for (let unit = first; !stop; unit += 8) {
          const both = [1, 2].map(part => ({ sql: 'insert into pairs values (?, ?)', args: [unit, part] }))
          const error = await failure(client.batch(both, 'write'))
          if (error === undefined) confirmed.push(unit)
          else doubtful.push(unit)
        }
      }
      const writers = Array.from({ length: 8 }, (_, first) => writer(first))
      await vi.waitFor(() => expect(confirmed.length).toBeGreaterThan(100), { timeout: 20_000, interval: 5 })
      await server.down()
      await vi.waitFor(() => expect(doubtful.length).toBeGreaterThan(0), { timeout: 20_000, interval: 5 })
      stop = true
      await Promise.all(writers)
      await server.back()
      const { rows } = await client.execute('select unit, count(*) as parts from pairs group by unit')
      expect(rows.filter(({ parts }) => parts !== 2)).toEqual([])
      const there = new Set(rows.map(({ unit }) => unit))
      expect(confirmed.filter(unit => !there.has(unit))).toEqual([])
      const known = new Set([...confirmed, ...doubtful])
      expect([...there].filter(unit => !known.has(Number(unit)))).toEqual([])
    }, 60_000)

    it('answers and the answer is lost: a read is asked again, a write is not and is said to be in doubt', async () => {
      const way = await lossyWay(server.primaryUrl)
      const over = await clientOf(way.url)
      const before = await numbers(over)
      way.lose(true)
      const error = await failure(over.execute('insert into facts values (10)'))
      expect(String(error)).toMatch(/may have been done/)
      expect(dbFault(error)).toBe('unknown')
      expect(await failure(numbers(over))).toBeInstanceOf(Error)
      way.lose(false)
      await expect.poll(() => numbers(over), { timeout: 5000 }).toEqual([...before, 10])
      // Were it sent again, its number would be refused.
      await over.execute('insert into facts values (11)')
      await over.close()
      await way.close()
    })

    it('cuts a kept connection between two requests: the next ones go over another', async () => {
      const way = await lossyWay(server.primaryUrl)
      const over = await clientOf(way.url)
      await numbers(over)
      way.lose(true)
      const read = numbers(over)
      setTimeout(() => way.lose(false), 0)
      await failure(read)
      expect(await numbers(over)).toContain(10)
      await over.close()
      await way.close()
    })

    it('is not there: nothing was done, and the sentence says so', async () => {
      const way = await lossyWay(server.primaryUrl)
      const over = await clientOf(way.url)
      await way.close()
      const error = await failure(over.execute('insert into facts values (20)'))
      expect(error).toMatchObject({ code: 'SERVER_NOT_REACHED' })
      expect(dbFault(error)).toBe('unknown')
      expect(await numbers(client)).not.toContain(20)
      await over.close()
    })

    it('is held by a second writer: each waits, and what is refused is said to be busy', async () => {
      const other = await clientOf(server.primaryUrl)
      const all = Array.from({ length: 40 }, (_, n) =>
        (n % 2 === 0 ? client : other).execute(`insert into facts values (${100 + n})`),
      )
      const refused = (await Promise.allSettled(all)).flatMap(one =>
        one.status === 'rejected' ? [dbFault(one.reason)] : [],
      )
      expect(new Set(refused)).toEqual(new Set(refused.length > 0 ? ['busy'] : []))
      expect((await numbers(client)).filter(n => n >= 100).length).toBe(40 - refused.length)
      await other.close()
    })

    it('forgets a stream that was idle, which costs no caller anything', async () => {
      let nowMs = 0
      const address = serverAddress(server.primaryUrl)
      const quiet = serverClient({ url: address.url, transport: await poolTransport(address), monotonic: () => nowMs })
      await quiet.execute('insert into facts values (200)')
      // The client's clock stands still: it believes in a stream that the server has dropped.
      await new Promise(resolve => setTimeout(resolve, 11_000))
      await quiet.execute('insert into facts values (201)')
      expect((await numbers(quiet)).slice(-2)).toEqual([200, 201])
      nowMs += 9000
      expect((await numbers(quiet)).slice(-2)).toEqual([200, 201])
      await quiet.close()
    }, 30_000)
  })
}

describe('an answer that is none of a server', () => {
  const transportOf = (status: number, text: string) => ({
    post: async () => ({ status, text }),
    close: async () => undefined,
  })
  it.each([
    [401, '{"error":"Unauthorized: The JWT is invalid"}', 'SERVER_REFUSED_TOKEN', /refused the token/],
    [404, 'not here', 'SERVER_ERROR', /no libSQL server that speaks Hrana 3/],
    [404, '{"error":"Namespace `x` doesn\'t exist"}', 'SERVER_ERROR', /Namespace `x` doesn't exist/],
    [429, '', 'SQLITE_BUSY', /status 429/],
    [502, '<html>bad gateway</html>', 'SERVER_ERROR', /bad gateway/],
    [200, '<html>welcome</html>', 'SERVER_ERROR', /may have been done/],
    [200, '{"baton":null,"results":[]}', 'SERVER_ERROR', /not one of a libSQL server/],
  ])('%i %s', async (status, text, code, message) => {
    const client = serverClient({ url: 'http://server', transport: transportOf(status, text) })
    const asked = [client.execute('select 1'), client.execute('delete from facts'), client.batch(['select 1'], 'read')]
    for (const error of await Promise.all(asked.map(failure))) {
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
    }
  })
})
