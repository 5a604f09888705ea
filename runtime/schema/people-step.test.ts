import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { runtimeSteps } from './steps.ts'

/** The last step of the releases in which an e-mail was unique over the store. */
const OLDER = 28

const person = (id: string, tenant: string, email: string, role = 'member', disabledMs: number | null = null) => ({
  sql: `insert into users (id, tenant_id, email, name, role, password, created_ms, disabled_ms)
values (?, ?, ?, '"Ada \\u0000 L."', ?, '$scrypt$', 7, ?)`,
  args: [id, tenant, email, role, disabledMs],
})

async function rows(db: Db): Promise<unknown> {
  const tables = ['users', 'logins', 'user_links']
  return Promise.all(tables.map(async name => (await db.execute(`select * from ${name} order by 1`)).rows))
}

async function schema(db: Db, of: string): Promise<string[]> {
  const { rows } = await db.execute({
    sql: 'select sql from sqlite_master where tbl_name = ? order by name',
    args: [of],
  })
  return rows.map(({ sql }) => String(sql))
}

/** `open` gives an empty database. */
function suite(name: string, open: () => Promise<Db>) {
  describe(`the e-mails of tenants in ${name}`, () => {
    let db: Db
    beforeEach(async () => {
      db = await open()
      await migrate(
        db,
        'runtime',
        runtimeSteps.filter(({ id }) => id <= OLDER),
      )
    })
    afterEach(() => db.close())

    it('a store in which an e-mail was unique keeps its people, their logins and their links', async () => {
      await db.write([
        "insert into tenants (id, name, created_ms) values ('other', '\"other\"', 1)",
        person('a', 'default', 'ada@example.com', 'owner'),
        person('b', 'other', 'bob@example.com', 'viewer', 9),
        "insert into logins (hash, user_id, created_ms, expires_ms) values ('h', 'a', 1, 2), ('i', 'b', 3, 4)",
        "insert into user_links (user_id, hash, expires_ms) values ('b', 'l', 5)",
      ])
      const [before, logins, links] = [await rows(db), await schema(db, 'logins'), await schema(db, 'user_links')]
      await migrate(db, 'runtime', runtimeSteps)
      expect(await rows(db)).toEqual(before)
      // What refers to people is as it was, to the letter, and still refers to them.
      expect([await schema(db, 'logins'), await schema(db, 'user_links')]).toEqual([logins, links])
      expect((await db.execute('pragma foreign_key_check')).rows).toEqual([])
      await expect(db.execute("insert into logins values ('x', 'nobody', 1, 2)")).rejects.toThrow(/FOREIGN KEY/)
      await expect(db.execute("delete from users where id = 'b'")).rejects.toThrow(/FOREIGN KEY/)

      await db.write([person('c', 'other', 'ada@example.com')])
      await expect(db.write([person('d', 'other', 'ada@example.com')])).rejects.toThrow(/UNIQUE/)
      await expect(db.write([person('e', 'default', 'eve@example.com', 'owner')])).rejects.toThrow(/UNIQUE/)
      const { rows: left } = await db.execute("select name from sqlite_master where name like '%before%'")
      expect(left).toEqual([])
    })

    it('an e-mail is found by an index, in one tenant and over all', async () => {
      await migrate(db, 'runtime', runtimeSteps)
      for (const where of ["email = 'a'", "email = 'a' and tenant_id = 'b'"]) {
        const { rows } = await db.execute(`explain query plan select * from users where ${where}`)
        expect(rows.map(({ detail }) => detail).join()).toMatch(/^SEARCH users USING INDEX/)
      }
    })
  })
}

suite('memory', () => openDb(':memory:'))

if (await sqldAvailable()) {
  describe('with a server', () => {
    let server: Sqld
    beforeEach(async () => {
      server = await startSqld()
    })
    afterEach(() => server.stop())
    suite('a libSQL server', () => openDb(server.primaryUrl))
  })
}
