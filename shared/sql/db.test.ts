import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { openDb } from '../host/open-libsql.ts'
import { openWithWriteThread } from '../host/write-thread.ts'
import type { Db } from './db.ts'
import { dbFault } from './db-fault.ts'
import { groupCommit } from './group-commit.ts'
import { insertRows } from './insert-rows.ts'
import { type Migration, migrate } from './migrate.ts'

const steps: Migration[] = [
  { id: 1, name: 'runs', sql: 'create table runs (id text primary key, status text not null)' },
  {
    id: 2,
    name: 'events',
    sql: `create table events (run_id text not null references runs (id), seq integer not null, payload text, raw blob, primary key (run_id, seq));
create trigger count_guard before insert on events when new.seq < 1 begin select raise(abort, 'seq starts at 1; not below'); end; -- last`,
  },
]
const events = insertRows(
  'events',
  { run_id: 'text', seq: 'integer', payload: 'text', raw: 'blob' },
  { after: 'returning seq' },
)

interface Pair {
  /** Where writes go. */
  db: Db
  /** Where reads come from; the same one except for a replica. */
  view: Db
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-db-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function conformance(name: string, open: () => Promise<Pair>) {
  describe(`a ${name} database`, () => {
    let db: Db
    let view: Db
    const rows = async (statement: string) => {
      await view.sync()
      return (await view.execute(statement)).rows.map(row => ({ ...row }))
    }
    beforeAll(async () => {
      const pair = await open()
      db = pair.db
      view = pair.view
      await migrate(db, 'test', steps)
    })
    afterAll(async () => {
      await db.close()
      if (view !== db) view.close()
    })

    test('takes a batch whole', async () => {
      await db.write([
        "insert into runs values ('r1', 'queued')",
        { sql: 'insert into runs values (?, ?)', args: ['r2', 'done'] },
      ])
      expect(await rows('select id, status from runs order by id')).toEqual([
        { id: 'r1', status: 'queued' },
        { id: 'r2', status: 'done' },
      ])
    })

    test('keeps nothing of a batch whose last statement fails', async () => {
      const failing = db.write(["insert into runs values ('r3', 'queued')", "insert into runs values ('r1', 'again')"])
      const error = await failing.catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(Error)
      expect(dbFault(error)).toBe('statement')
      expect(await rows("select id from runs where id = 'r3'")).toEqual([])
    })

    test('holds references', async () => {
      const error = await db
        .execute("insert into events values ('nobody', 1, null, null)")
        .catch((thrown: unknown) => thrown)
      expect(String(error)).toMatch(/FOREIGN KEY/)
    })

    test('keeps a trigger that came with a migration', async () => {
      const error = await db
        .execute("insert into events values ('r1', 0, null, null)")
        .catch((thrown: unknown) => thrown)
      expect(String(error)).toMatch(/seq starts at 1; not below/)
    })

    test('inserts many rows with one statement and gives text and bytes back unchanged', async () => {
      const raw = Uint8Array.from({ length: 256 }, (_, index) => index)
      const payload = '{"text":"é<&> 😀 \\u0000 \' \\" \\n"}'
      const result = await db.execute(
        events.statement([
          { run_id: 'r1', seq: 1, payload, raw },
          { run_id: 'r1', seq: 2, payload: null, raw: null },
        ]),
      )
      expect(result.rows.map(row => row.seq)).toEqual([1, 2])
      const [first, second] = await rows('select payload, raw from events order by seq')
      expect(first?.payload).toBe(payload)
      expect(new Uint8Array(first?.raw as ArrayBuffer)).toEqual(raw)
      expect(second).toEqual({ payload: null, raw: null })
    })

    test('lets a poison row fail alone in a group commit', async () => {
      const writer = groupCommit<number, number>({
        write: async seqs => {
          const result = await db.execute(
            events.statement(seqs.map(seq => ({ run_id: 'r2', seq, payload: 'x', raw: null }))),
          )
          return result.rows.map(row => Number(row.seq))
        },
      })
      const outcomes = await Promise.allSettled([1, 2, 3, 2, 4, 0, 5].map(seq => writer.append(seq)))
      expect(outcomes.map(outcome => (outcome.status === 'fulfilled' ? outcome.value : 'refused'))).toEqual([
        1,
        2,
        3,
        'refused',
        4,
        'refused',
        5,
      ])
      expect(await rows("select count(*) as n from events where run_id = 'r2'")).toEqual([{ n: 5 }])
    })

    test('reads several statements of one moment', async () => {
      await view.sync()
      const [count, ids] = await view.read(['select count(*) as n from runs', 'select id from runs order by id'])
      expect(count?.rows[0]?.n).toBe(ids?.rows.length)
    })
  })
}

const same = async (opened: Promise<Db>): Promise<Pair> => {
  const db = await opened
  return { db, view: db }
}

conformance('file', () => same(openDb(join(folder, 'store.db'))))
conformance('file with a write thread', async () => {
  const lost = (why: string) => expect(why).toBe('never')
  const db = await openWithWriteThread(join(folder, 'threaded.db'), { lost })
  await db.ready
  return { db, view: db }
})
conformance('memory', () => same(openDb(':memory:')))

if (await sqldAvailable()) {
  describe('with a libSQL server', () => {
    // Three servers of their own, because the suite starts from empty tables.
    let direct: Sqld
    let embedded: Sqld
    let replicated: Sqld
    beforeAll(async () => {
      ;[direct, embedded, replicated] = await Promise.all([startSqld(), startSqld(), startSqld({ replica: true })])
    })
    afterAll(() => Promise.all([direct, embedded, replicated].map(server => server?.stop())))

    conformance('remote', () => same(openDb(direct.primaryUrl)))

    conformance('embedded replica', async () => ({
      db: await openDb(embedded.primaryUrl),
      view: await openDb(join(folder, 'embedded.db'), { syncUrl: embedded.primaryUrl }),
    }))

    test('an embedded replica refuses writes before they reach its server', async () => {
      const view = await openDb(join(folder, 'embedded-2.db'), { syncUrl: embedded.primaryUrl })
      expect(view).toMatchObject({ kind: 'replica', readOnly: true })
      await expect(view.execute("insert into runs values ('x', 'y')")).rejects.toThrow(
        /opened read-only and cannot run: insert/,
      )
      await expect(view.client.executeMultiple('create table t (a)')).rejects.toThrow(/read-only/)
      view.close()
    })

    test('a server opened read-only refuses writes and transactions', async () => {
      const view = await openDb(direct.primaryUrl, { readOnly: true })
      await expect(view.write(["insert into runs values ('x', 'y')"])).rejects.toThrow(/read-only/)
      await expect(view.client.transaction('write')).rejects.toThrow(/read-only/)
      expect((await view.execute('select 1 as one')).rows[0]?.one).toBe(1)
      view.close()
    })

    test('a server replica shows what its primary committed, and passes writes on', async () => {
      const primary = await openDb(replicated.primaryUrl)
      const replica = await openDb(replicated.replicaUrl ?? '')
      await migrate(primary, 'test', steps)
      await primary.execute("insert into runs values ('p', 'queued')")
      const onReplica = () =>
        replica.execute('select id from runs order by id').then(result => result.rows.map(row => row.id))
      await expect.poll(() => onReplica().catch(() => []), { timeout: 20_000, interval: 20 }).toEqual(['p'])
      await replica.execute("insert into runs values ('q', 'queued')")
      await expect.poll(onReplica, { timeout: 20_000, interval: 20 }).toEqual(['p', 'q'])
      primary.close()
      replica.close()
    })
  })
}

const settingsOf = async (db: Db) =>
  Promise.all(
    ['synchronous', 'foreign_keys', 'busy_timeout', 'temp_store', 'journal_mode', 'query_only'].map(
      async name => (await db.client.execute(`pragma ${name}`)).rows[0]?.[0],
    ),
  )

describe('the settings of a local connection', () => {
  // NORMAL, because FULL is the default and would hide a lost setting.
  const expected = [1, 1, 20, 2, 'wal', 0]

  test('hold after a batch, a transaction, a failed batch and many statements at once', async () => {
    const db = await openDb(join(folder, 'settings.db'), { synchronous: 'normal' })
    await db.execute('create table t (a)')
    expect(await settingsOf(db)).toEqual(expected)
    await db.write(['insert into t values (1)'])
    expect(await settingsOf(db)).toEqual(expected)
    const transaction = await db.client.transaction('write')
    await transaction.execute('insert into t values (2)')
    await transaction.commit()
    expect(await settingsOf(db)).toEqual(expected)
    await expect(db.write(['insert into nowhere values (1)'])).rejects.toThrow(/no such table/)
    expect(await settingsOf(db)).toEqual(expected)
    for (const all of await Promise.all(Array.from({ length: 5 }, () => settingsOf(db)))) expect(all).toEqual(expected)
    db.close()
  })

  test('are put back when the client replaces its connection', async () => {
    const db = await openDb(join(folder, 'reconnect.db'), { synchronous: 'normal' })
    await db.client.reconnect()
    expect(await settingsOf(db)).toEqual(expected)
    db.close()
  })

  test('are FULL when nothing is asked for', async () => {
    const db = await openDb(join(folder, 'full.db'))
    expect((await settingsOf(db))[0]).toBe(2)
    db.close()
  })

  test('a statement beside an open transaction is told to come back, and a group commit does', async () => {
    const db = await openDb(':memory:')
    await db.execute('create table t (a)')
    const transaction = await db.client.transaction('write')
    const error = await db.execute('insert into t values (1)').catch((thrown: unknown) => thrown)
    expect(dbFault(error)).toBe('busy')
    const writer = groupCommit<number, number>({
      write: async rows => {
        await db.execute(`insert into t values ${rows.map(row => `(${row})`).join()}`)
        return rows
      },
      wait: () => transaction.commit(),
    })
    expect(await writer.append(7)).toBe(7)
    db.close()
  })
})
