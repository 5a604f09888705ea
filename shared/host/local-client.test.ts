import { copyFile, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '@libsql/client/web'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { localClient } from './local-client.ts'

let folder: string
let db: Client
const open = () => localClient(join(folder, 'x.db'), { timeout: 1000 })

/** The places of the files are looked at every tenth of a second. */
const looked = () => wait(150)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-client-'))
  db = open()
  await db.execute('pragma journal_mode = wal')
  await db.execute('create table t (a integer primary key, b text, c blob) strict')
})
afterEach(async () => {
  db.close()
  await rm(folder, { recursive: true, force: true })
})

describe('a local client', () => {
  it('gives rows by name and by place, with whole numbers exact and bytes as they were', async () => {
    const bytes = new Uint8Array([0, 1, 255])
    const big = 2 ** 53 - 1
    await db.execute({ sql: 'insert into t values (?, ?, ?)', args: [big, 'é', bytes] })
    for (let again = 0; again < 2; again++) {
      const { rows, columns } = await db.execute('select a, b, c from t')
      expect(columns).toEqual(['a', 'b', 'c'])
      expect([rows[0]?.a, rows[0]?.[1], rows[0]?.length]).toEqual([big, 'é', 3])
      expect(new Uint8Array(rows[0]?.c as ArrayBuffer)).toEqual(bytes)
      expect(Object.keys(rows[0] ?? {})).toEqual(['a', 'b', 'c'])
    }
    const twice = await db.execute('select 1 as x, 2 as x')
    expect([twice.rows[0]?.x, twice.rows[0]?.[1]]).toEqual([1, 2])
    // Beyond what a number holds exactly: the reader of the row names it, and the rows beside it are read.
    expect((await db.execute('select 9007199254740993 as n')).rows[0]?.n).toBe(9007199254740993n)
  })

  it('gives all rows of a statement one shape, whenever it is executed', async () => {
    const first = await db.execute('select 1 as x, 2 as y')
    const again = await db.execute('select 1 as x, 2 as y')
    expect(Object.getPrototypeOf(again.rows[0])).toBe(Object.getPrototypeOf(first.rows[0]))
  })

  it('never opens another file anew than the one that it wrote to', async () => {
    const path = join(folder, 'x.db')
    await db.batch(["insert into t (b) values ('one')"], 'write')
    await db.execute('pragma wal_checkpoint(truncate)')
    await copyFile(path, join(folder, 'copy.db'))
    await rename(path, join(folder, 'away.db'))
    await expect(db.reconnect()).rejects.toMatchObject({ code: 'STORE_MOVED' })
    await rename(join(folder, 'copy.db'), path)
    await expect(db.execute('select * from t')).rejects.toMatchObject({ code: 'STORE_MOVED' })
    await rename(join(folder, 'away.db'), path)
    expect((await db.execute('select b from t')).rows).toMatchObject([{ b: 'one' }])
  })

  it('writes no more to a file that was moved, in a batch or alone', async () => {
    const path = join(folder, 'x.db')
    const insert = "insert into t (b) values ('one') returning b"
    await db.execute(insert)
    await rename(path, join(folder, 'away.db'))
    await looked()
    await expect(db.execute(insert)).rejects.toMatchObject({ code: 'STORE_MOVED' })
    await expect(db.batch([insert], 'write')).rejects.toMatchObject({ code: 'STORE_MOVED' })
    await rename(join(folder, 'away.db'), path)
    expect((await db.execute('select b from t')).rows).toHaveLength(1)
  })

  it('writes nothing to a file that was replaced before its first write', async () => {
    const path = join(folder, 'x.db')
    const idle = open()
    expect((await idle.execute('select b from t')).rows).toEqual([])
    await copyFile(path, join(folder, 'copy.db'))
    await rename(join(folder, 'copy.db'), path)
    const insert = "insert into t (b) values ('one')"
    await expect(idle.execute(insert)).rejects.toMatchObject({ code: 'STORE_MOVED' })
    await expect(idle.batch([insert], 'write')).rejects.toMatchObject({ code: 'STORE_MOVED' })
    idle.close()
  })

  it('leaves no read open behind a statement, so that a checkpoint can finish', async () => {
    for (let n = 0; n < 500; n++) await db.execute({ sql: 'insert into t (b) values (?)', args: ['x'.repeat(1000)] })
    await db.execute('select * from t')
    await db.execute('select * from t limit 1')
    const other = open()
    const { rows } = await other.execute('pragma wal_checkpoint(truncate)')
    expect(rows[0]?.busy).toBe(0)
    other.close()
  })

  it('sees a column that somebody else added, and a table that was made anew', async () => {
    await db.execute('insert into t (b) values (null)')
    expect((await db.execute('select * from t')).columns).toEqual(['a', 'b', 'c'])
    const other = open()
    await other.execute('alter table t add column d text')
    other.close()
    const { rows, columns } = await db.execute('select * from t')
    expect([columns, rows[0]?.d]).toEqual([['a', 'b', 'c', 'd'], null])
    await db.execute('drop table t')
    await db.execute('create table t (z integer)')
    await db.execute('insert into t values (5)')
    expect((await db.execute('select * from t')).rows[0]?.z).toBe(5)
  })

  it('is as good as new after a statement that failed, alone and in a batch', async () => {
    const insert = (a: number) => ({ sql: 'insert into t (a) values (?)', args: [a] })
    await db.execute(insert(1))
    for (let again = 0; again < 3; again++) {
      await expect(db.execute(insert(1))).rejects.toMatchObject({
        code: 'SQLITE_CONSTRAINT',
        extendedCode: 'SQLITE_CONSTRAINT_PRIMARYKEY',
      })
      await expect(db.batch([insert(2), insert(1)], 'write')).rejects.toMatchObject({
        code: 'SQLITE_CONSTRAINT',
        statementIndex: 1,
      })
    }
    await db.batch([insert(2), insert(3)], 'write')
    expect((await db.execute('select count(*) from t')).rows[0]?.[0]).toBe(3)
    await expect(db.execute('select nothing from t')).rejects.toMatchObject({ code: 'SQLITE_ERROR' })
  })

  it('keeps no more statements than it may', async () => {
    for (let n = 0; n < 1000; n++) expect((await db.execute(`select ${n} as n`)).rows[0]?.n).toBe(n)
  })

  it('tells a writer that another process holds the lock', async () => {
    const other = open()
    const transaction = await other.transaction('write')
    const impatient = localClient(join(folder, 'x.db'), { timeout: 1 })
    await expect(impatient.execute("insert into t (b) values ('x')")).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
    await transaction.rollback()
    await impatient.execute("insert into t (b) values ('x')")
    impatient.close()
    other.close()
  })

  it.each(['alone', 'in a batch', 'in a batch that writes', 'in a transaction'])(
    'commits again once another process lets go of the lock it met %s',
    async where => {
      const other = open()
      const impatient = localClient(join(folder, 'x.db'), { timeout: 1 })
      const insert = "insert into t (b) values ('x')"
      await impatient.batch([insert], 'write')
      const transaction = await other.transaction('write')
      for (let again = 0; again < 3; again++) {
        const tried =
          where === 'alone'
            ? impatient.execute(insert)
            : where === 'in a transaction'
              ? impatient.transaction('write')
              : impatient.batch([insert], where === 'in a batch' ? 'deferred' : 'write')
        await expect(tried).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
        // What reads goes on meanwhile.
        await impatient.batch(['select * from t'], 'read')
      }
      await transaction.rollback()
      await impatient.batch([insert, insert], 'write')
      expect((await impatient.execute('select count(*) from t')).rows[0]?.[0]).toBe(3)
      impatient.close()
      other.close()
    },
  )
})
