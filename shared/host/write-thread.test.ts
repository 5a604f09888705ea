import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import type { InStatement } from '@libsql/client/web'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isFull } from '../../tests/slice.ts'
import type { Db } from '../sql/db.ts'
import { dbFault, isFailedCondition, isStoreUnavailable } from '../sql/db-fault.ts'
import { openDb } from './open-libsql.ts'
import { openWithWriteThread } from './write-thread.ts'

let folder: string
let names = 0
const opened: Db[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-write-thread-'))
})
afterAll(async () => {
  for (const db of opened) await db.close()
  await rm(folder, { recursive: true, force: true })
})

const TABLE = 'create table t (id integer primary key, size integer not null, raw blob) strict'

async function threaded(lost: (why: string) => void = why => expect(why).toBe('never')) {
  const path = join(folder, `${names++}.db`)
  const db = await openWithWriteThread(path, { lost })
  await db.ready
  await db.execute(TABLE)
  opened.push(db)
  return { db, path }
}

/** What a transaction came to: its rows, or what its error says to a caller. */
const outcome = (db: Db, statements: InStatement[]) =>
  db.write(statements).then(
    results => results.map(({ rows, rowsAffected, columns }) => [rows.map(row => ({ ...row })), rowsAffected, columns]),
    (error: unknown) => [dbFault(error), isFailedCondition(error, 't.size'), isStoreUnavailable(error)],
  )

const statement = fc.oneof(
  fc
    .record({ id: fc.nat(6), size: fc.option(fc.nat(9)), raw: fc.option(fc.uint8Array({ maxLength: 4 })) })
    .map(({ id, size, raw }): InStatement => {
      return { sql: 'insert into t (id, size, raw) values (?, ?, ?) returning id, raw', args: [id, size, raw] }
    }),
  fc.nat(6).map((id): InStatement => ({ sql: 'update t set size = size + 1 where id = :id', args: { id } })),
  fc.nat(6).map((id): InStatement => ({ sql: 'delete from t where id < ? returning size as was', args: [id] })),
  fc.constant<InStatement>('insert into nowhere values (1)'),
)

it('whatever is written, and whatever of it fails, comes to what it does without a thread', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(statement, { minLength: 1, maxLength: 4 }), { maxLength: 8 }), async units => {
      const { db } = await threaded()
      const plain = await openDb(':memory:')
      await plain.execute(TABLE)
      const expected = []
      for (const unit of units) expected.push(await outcome(plain, unit))
      // All at once: they are carried out in their order.
      expect(await Promise.all(units.map(unit => outcome(db, unit)))).toEqual(expected)
      const all = 'select * from t order by id'
      expect((await db.execute(all)).rows.map(row => ({ ...row }))).toEqual(
        (await plain.execute(all)).rows.map(row => ({ ...row })),
      )
      await plain.close()
      await db.close()
      opened.splice(opened.indexOf(db), 1)
    }),
    { numRuns: 15 },
  )
})

it('while another process holds the lock, reads are answered, the store says that it takes no writes, and a write waits', async () => {
  const { db, path } = await threaded()
  const other = await openDb(path)
  const held = await other.client.transaction('write')
  let turns = 0
  const beat = setInterval(() => turns++, 5)
  const waiting = db.execute('insert into t (id, size) values (1, 1)')
  const began = performance.now()
  const refused = await db.writable().catch((error: unknown) => error)
  expect(String(refused)).toContain('The store is locked by another process')
  expect(performance.now() - began).toBeLessThan(3000)
  expect((await db.execute('select count(*) as n from t')).rows[0]?.n).toBe(0)
  expect(turns).toBeGreaterThan(50)
  clearInterval(beat)
  await held.rollback()
  await waiting
  await db.writable()
  await other.close()
})

it.runIf(isFull)(
  'a lock that is not let go is a store that is away, by the same error as without a thread',
  async () => {
    const { db, path } = await threaded()
    const other = await openDb(path)
    const held = await other.client.transaction('write')
    const refused = await db.write(['insert into t (id, size) values (1, 1)']).catch((error: unknown) => error)
    expect([dbFault(refused), isStoreUnavailable(refused), String(refused)]).toEqual([
      'busy',
      true,
      expect.stringContaining('The store is locked by another process'),
    ])
    await held.rollback()
    await other.close()
  },
  30_000,
)

it('what is on its way when a process closes its store is written before it ends, and nothing is taken after that', async () => {
  const path = join(folder, 'closed.db')
  const program = `
    import { openWithWriteThread } from ${JSON.stringify(new URL('write-thread.ts', import.meta.url).href)}
    const db = await openWithWriteThread(${JSON.stringify(path)}, { lost: why => { throw new Error(why) } })
    await db.ready
    await db.execute('create table t (id integer primary key)')
    for (let id = 0; id < 20; id++) void db.write(['insert into t values (' + id + ')'])
    await db.close()
    console.log(await db.write(['insert into t values (20)']).catch(error => error.code))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  expect(stdout).toBe('CLIENT_CLOSED\n')
  const db = await openDb(path)
  expect((await db.execute('select count(*) as n from t')).rows[0]?.n).toBe(20)
  db.close()
})

it('reports that the thread ended by itself, and fails what was on its way as perhaps written', async () => {
  const told = Promise.withResolvers<string>()
  let thread: Worker | undefined
  const db = await openWithWriteThread(join(folder, 'ends.db'), {
    lost: told.resolve,
    started(worker) {
      thread = worker
    },
  })
  await db.ready
  await db.execute(TABLE)
  thread!.postMessage('nothing that it understands')
  const lost = await db.execute('insert into t (id, size) values (1, 1)').catch((error: unknown) => error)
  expect(dbFault(lost)).toBe('unknown')
  expect(await told.promise).toContain('Cannot use')
  const later = await db.execute('insert into t (id, size) values (1, 1)').catch((error: unknown) => error)
  expect(later).toMatchObject({ code: 'CLIENT_CLOSED' })
  await db.close()
})

it('a text is sent once, and what could not be sent leaves the numbers of both sides alike', async () => {
  const { db } = await threaded()
  const insert = 'insert into t (id, size) values (?, ?)'
  const remove = 'delete from t where id = ? returning size'
  const unsendable = { sql: 'update t set raw = ? where id = 1', args: [(() => 0) as unknown as string] }
  await expect(db.write([{ sql: insert, args: [1, 10] }, unsendable])).rejects.toThrow('could not be cloned')
  // Some of more texts than are numbered, in two orders.
  const many = Array.from({ length: 1200 }, (_, n) => `insert into t (id, size) values (?, ${n})`)
  for (const texts of [many, many.toReversed()]) {
    await db.write(texts.map((sql, place) => ({ sql, args: [1000 + place] })))
    const { rows } = await db.execute('select size from t order by id')
    expect(rows.map(row => `insert into t (id, size) values (?, ${row.size})`)).toEqual(texts)
    await db.write(['delete from t'])
  }
  await db.write([
    { sql: insert, args: [1, 10] },
    { sql: insert, args: [2, 20] },
  ])
  const [removed] = await db.write([{ sql: remove, args: [2] }, 'delete from t'])
  expect(removed?.rows[0]?.size).toBe(20)
})
