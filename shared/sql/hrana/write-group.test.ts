import type { Client, InStatement, ResultSet } from '@libsql/client/web'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { localClient } from '../../host/local-client.ts'
import { poolTransport } from '../../host/pool-transport.ts'
import { serverAddress } from './server-address.ts'
import { serverClient } from './server-client.ts'
import type { HranaTransport } from './stream.ts'

const SCHEMA = [
  'create table parents (id integer primary key, n integer not null default 0 check (n < 4)) strict',
  `create table children (id integer primary key, parent integer not null references parents (id), body text) strict`,
  `create trigger no_seven before insert on parents when new.id = 7 begin select raise(rollback, 'seven ends it'); end`,
  `create trigger no_six before insert on parents when new.id = 6 begin select raise(fail, 'six fails'); end`,
]

const id = fc.integer({ min: 1, max: 8 })
const statement: fc.Arbitrary<InStatement> = fc.oneof(
  id.map(n => ({ sql: 'insert into parents (id) values (?)', args: [n] })),
  id.map(n => ({
    sql: 'insert into parents (id) values (?) on conflict do update set n = n + 1 returning id, n',
    args: [n],
  })),
  id.map(n => ({ sql: 'update parents set n = n + 1 where id <= ?', args: [n] })),
  id.map(n => ({ sql: 'delete from parents where id = :id', args: { id: n } })),
  fc
    .tuple(id, id)
    .map(([n, parent]) => ({ sql: 'insert into children (id, parent) values (?, ?)', args: [n, parent] })),
  id.map(n => ({ sql: 'update children set body = ? where id = ? returning *', args: ['é"\n😀', n] })),
  fc.constant('select count(*) as n from parents'),
  fc.constant('insert into nowhere values (1)'),
  fc.constant("insert into parents (id) values ('text')"),
)
const units = fc.array(fc.array(statement, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 8 })

/** What a caller sees of its unit; the driver of a file counts no rows of a statement that returns some. */
async function seen(written: Promise<ResultSet[]>): Promise<unknown> {
  try {
    const results = await written
    return results.map(({ rows, columns, rowsAffected }) => ({
      rows: rows.map(row => ({ ...row })),
      changed: columns.length > 0 ? undefined : rowsAffected,
    }))
  } catch (error) {
    const at = error instanceof Error && 'statementIndex' in error ? error.statementIndex : undefined
    return { refusedAt: at }
  }
}

const content = async (client: Client) =>
  Promise.all(
    ['parents', 'children'].map(async table =>
      (await client.execute(`select * from ${table} order by id`)).rows.map(row => ({ ...row })),
    ),
  )

if (await sqldAvailable()) {
  describe('units that are written together', () => {
    let server: Sqld
    let client: Client
    let sent: number
    beforeAll(async () => {
      server = await startSqld()
      const address = serverAddress(server.primaryUrl)
      const inner = await poolTransport(address)
      const transport: HranaTransport = {
        post(url, body) {
          sent++
          return inner.post(url, body)
        },
        close: () => inner.close(),
      }
      client = serverClient({ url: address.url, transport })
      await client.batch(SCHEMA, 'write')
    })
    afterAll(async () => {
      await client?.close()
      await server?.stop()
    })

    it('leave and answer what each alone would, whichever of them fail', async () => {
      await fc.assert(
        fc.asyncProperty(units, async all => {
          const reference = localClient(':memory:', { timeout: 1000 })
          await reference.execute('pragma foreign_keys = on')
          await reference.batch(SCHEMA, 'write')
          await client.batch(['delete from children', 'delete from parents'], 'write')
          const together = await Promise.all(all.map(unit => seen(client.batch(unit, 'write'))))
          const apart: unknown[] = []
          for (const unit of all) apart.push(await seen(reference.batch(unit, 'write')))
          expect(together).toEqual(apart)
          expect(await content(client)).toEqual(await content(reference))
          reference.close()
        }),
        { numRuns: 300 },
      )
    }, 120_000)

    it('are each by themselves where the commit is what one of them makes fail', async () => {
      const deferred = 'deferrable initially deferred'
      await client.execute(`create table late (id integer primary key references parents (id) ${deferred}) strict`)
      await client.batch(['delete from children', 'delete from parents'], 'write')
      const told = await Promise.allSettled([
        client.execute('insert into parents (id) values (1)'),
        client.execute('insert into late values (8)'),
        client.execute('insert into parents (id) values (2) returning id'),
      ])
      expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect((await content(client))[0]?.map(row => row.id)).toEqual([1, 2])
      await client.execute('drop table late')
    })

    it('take one request, and one transaction', async () => {
      await client.batch(['delete from children', 'delete from parents'], 'write')
      sent = 0
      await Promise.all([1, 2, 3, 4, 5].map(n => client.execute(`insert into parents (id) values (${n})`)))
      expect(sent).toBe(1)
    })

    it('are bounded by their statements and their bytes', async () => {
      await client.batch(['delete from children', 'delete from parents'], 'write')
      sent = 0
      const many = Array.from({ length: 3 }, () => Array.from({ length: 150 }, () => 'update parents set n = 0'))
      await Promise.all(many.map(unit => client.batch(unit, 'write')))
      expect(sent).toBe(2)
      sent = 0
      const large = Array.from({ length: 3 }, (_, n) => ({
        sql: 'insert or replace into parents (id, n) values (?, length(?) * 0)',
        args: [n + 1, 'x'.repeat(1_900_000)],
      }))
      await Promise.all(large.map(unit => client.execute(unit)))
      expect(sent).toBe(2)
    })

    it('do not suffer from one whose answer is larger than the server gives', async () => {
      await client.batch(['delete from children', 'delete from parents'], 'write')
      const much = `with recursive c (n) as (select 1 union all select n + 1 from c where n < 12000)
        select n, hex(zeroblob(500)) as text from c`
      const told = await Promise.allSettled([
        client.execute('insert into parents (id) values (1)'),
        client.batch(['insert into parents (id) values (2)', much], 'write'),
        client.execute('insert into parents (id) values (3)'),
      ])
      expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(told[1]).toMatchObject({ reason: { code: 'RESPONSE_TOO_LARGE' } })
      expect((await content(client))[0]?.map(row => row.id)).toEqual([1, 3])
      // The stream that it broke off on holds no lock and no old moment.
      await client.execute('insert into parents (id) values (4)')
      const reads = await Promise.allSettled([
        client.batch(['select 1 as one', much], 'read'),
        client.batch(['select count(*) as n from parents'], 'read'),
      ])
      expect(reads[0]).toMatchObject({ status: 'rejected', reason: { code: 'RESPONSE_TOO_LARGE' } })
      expect(reads[1]).toMatchObject({ status: 'fulfilled', value: [{ rows: [{ n: 3 }] }] })
    })

    it('see the columns that another process made or dropped since', async () => {
      const other = serverClient({
        url: server.primaryUrl,
        transport: await poolTransport(serverAddress(server.primaryUrl)),
      })
      const [all, rest] = ['select * from parents', 'select * from children']
      await client.execute('alter table children add column body_2 text')
      await Promise.all([client.execute(all), client.execute(rest), client.batch([rest], 'read')])
      await other.batch(['alter table parents add column added text', 'alter table children drop column body'], 'write')
      const [kept] = await client.batch([
        { sql: "insert into parents (id, added) values (8, 'late') returning *" },
        "insert into children (id, parent, body_2) values (1, 8, 'x')",
      ])
      expect(kept?.rows).toEqual([{ id: 8, n: 0, added: 'late' }])
      await other.execute('alter table parents drop column n')
      const [parents, children, batch] = await Promise.all([
        client.execute(`${all} where id = 8`),
        client.execute(rest),
        client.batch([rest], 'read'),
      ])
      expect(parents.rows).toEqual([{ id: 8, added: 'late' }])
      expect([children.rows, batch[0]?.rows]).toEqual([
        [{ id: 1, parent: 8, body_2: 'x' }],
        [{ id: 1, parent: 8, body_2: 'x' }],
      ])
      await other.close()
    })

    it('may be a setting or a script, which end with their request', async () => {
      await client.execute('pragma foreign_keys = off')
      await client.batch(['delete from children'], 'write')
      await expect(client.execute('insert into children (id, parent) values (1, 99)')).rejects.toThrow(/FOREIGN KEY/)
      await expect(
        client.executeMultiple(
          'begin immediate; insert into parents (id) values (50); insert into nowhere values (1); commit;',
        ),
      ).rejects.toThrow(/nowhere/)
      await client.executeMultiple('begin immediate; insert into parents (id) values (51); commit;')
      expect((await client.execute('select id from parents where id >= 50')).rows.map(row => row.id)).toEqual([51])
      await expect(client.execute('vacuum')).rejects.toThrow(/unsupported statement/)
      await expect(client.transaction('write')).rejects.toThrow(/no interactive transaction through this client/)
    })
  })
}
