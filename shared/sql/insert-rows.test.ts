import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDb } from '../host/open-libsql.ts'
import type { Db } from './db.ts'
import { insertRows } from './insert-rows.ts'

let db: Db
beforeAll(async () => {
  db = await openDb(':memory:')
  await db.write([
    'create table things (n integer primary key, name text, size integer, ratio real, raw blob, story text)',
    'create table leases (run_id text primary key, epoch integer)',
    'create table entries (run_id text, seq integer, primary key (run_id, seq))',
  ])
})
afterAll(() => db.close())

const things = insertRows('things', {
  n: 'integer',
  name: 'text',
  size: 'integer',
  raw: 'blob',
  story: 'text',
  ratio: 'real',
})

describe('insert of rows', () => {
  test('gives every value back as it went in', async () => {
    const rows = fc.array(
      fc.record({
        name: fc.option(fc.string({ unit: 'binary' }).map(text => text.replaceAll('\0', ''))),
        size: fc.option(fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))),
        ratio: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
        raw: fc.option(fc.uint8Array({ maxLength: 40 })),
        story: fc.option(fc.string({ unit: 'binary' }).map(text => text.replaceAll('\0', '').toWellFormed())),
      }),
      { minLength: 1, maxLength: 20 },
    )
    await fc.assert(
      fc.asyncProperty(rows, async made => {
        await db.execute('delete from things')
        await db.execute(things.statement(made.map((row, n) => ({ n, ...row }))))
        const result = await db.execute(
          'select name, cast(size as text) as size, ratio, raw, story from things order by n',
        )
        expect(result.rows).toHaveLength(made.length)
        for (const [index, row] of made.entries()) {
          const stored = result.rows[index]
          expect(stored?.name ?? null).toBe(row.name)
          expect(stored?.story ?? null).toBe(row.story)
          expect(stored?.size ?? null).toBe(row.size === null ? null : String(row.size))
          expect(stored?.raw instanceof ArrayBuffer ? new Uint8Array(stored.raw) : null).toEqual(row.raw)
          // The engine keeps no sign of zero.
          if (row.ratio === null) expect(stored?.ratio).toBe(null)
          else expect(Number(stored?.ratio) + 0).toBe(row.ratio + 0)
        }
      }),
      { numRuns: 150 },
    )
  })

  test('stores an unpaired surrogate as the replacement character instead of invalid UTF-8', async () => {
    await db.execute('delete from things')
    await db.execute(
      things.statement([{ n: 1, name: 'cut \ud83d', size: null, ratio: null, raw: null, story: 'also \ud83d' }]),
    )
    expect((await db.execute('select name, story from things')).rows[0]).toMatchObject({
      name: 'cut \ufffd',
      story: 'also \ufffd',
    })
  })

  test.each([
    [{ name: 'a\0b' }, /things\.name holds a NUL character/],
    [{ story: 'a\0b' }, /things\.story holds a NUL character/],
    [{ name: 7 }, /things\.name expected text, got 7/],
    [{ size: 1.5 }, /things\.size expected integer, got 1\.5/],
    [{ size: 2n ** 63n }, /things\.size expected a 64-bit integer/],
    [{ ratio: Number.NaN }, /things\.ratio expected real, got NaN/],
    [{ raw: 'text' }, /things\.raw expected blob, got string/],
  ])('refuses %s before anything is sent', (wrong, message) => {
    const row = { n: 1, name: null, size: null, ratio: null, raw: null, story: null, ...wrong }
    // The types refuse these too; values from outside need the check.
    expect(() => things.statement([row as never])).toThrow(message)
  })

  test('can hold rows back by a condition on columns the table does not have', async () => {
    await db.execute("insert into leases values ('mine', 3), ('lost', 8)")
    const append = insertRows(
      'entries',
      { run_id: 'text', seq: 'integer' },
      {
        given: { epoch: 'integer' },
        where: 'exists (select 1 from leases l where l.run_id = new.run_id and l.epoch = new.epoch)',
        after: 'returning run_id, seq',
      },
    )
    const result = await db.execute(
      append.statement([
        { run_id: 'mine', seq: 1, epoch: 3 },
        { run_id: 'lost', seq: 1, epoch: 7 },
        { run_id: 'mine', seq: 2, epoch: 3 },
      ]),
    )
    expect(result.rows.map(row => [row.run_id, row.seq])).toEqual([
      ['mine', 1],
      ['mine', 2],
    ])
  })

  test('takes a conflict clause', async () => {
    const append = insertRows('entries', { run_id: 'text', seq: 'integer' }, { after: 'on conflict do nothing' })
    const rows = [{ run_id: 'again', seq: 1 }]
    await db.execute(append.statement(rows))
    expect((await db.execute(append.statement([...rows, { run_id: 'again', seq: 2 }]))).rowsAffected).toBe(1)
  })

  test('takes any number of rows up to what the engine binds, and no text of its own for each number', async () => {
    const append = insertRows('entries', { run_id: 'text', seq: 'integer' }, { after: 'on conflict do nothing' })
    const texts = new Set<unknown>()
    for (let count = 0; count <= 300; count++) {
      await db.execute('delete from entries')
      const statement = append.statement(Array.from({ length: count }, (_, seq) => ({ run_id: 'many', seq })))
      texts.add((statement as { sql: string }).sql)
      expect((await db.execute(statement)).rowsAffected).toBe(count)
    }
    expect(texts.size).toBe(50)
    await db.execute('delete from entries')
    const most = Array.from({ length: 16_382 }, (_, seq) => ({ run_id: 'most', seq }))
    expect((await db.execute(append.statement(most))).rowsAffected).toBe(16_382)
    expect(() => append.statement([...most, { run_id: 'over', seq: 0 }])).toThrow(/at most 16382 rows/)
  })

  test('takes more rows than one statement does in several', async () => {
    await db.execute('delete from entries')
    const append = insertRows('entries', { run_id: 'text', seq: 'integer' })
    const rows = Array.from({ length: 40_000 }, (_, seq) => ({ run_id: 'long', seq }))
    await db.write(append.statements(rows))
    expect((await db.execute('select count(*) as n, max(seq) as last from entries')).rows[0]).toMatchObject({
      n: 40_000,
      last: 39_999,
    })
    expect(append.statements([])).toEqual([])
  })

  test('leaves numbered and further arguments to the condition', async () => {
    await db.execute('delete from entries')
    const append = insertRows('entries', { run_id: 'text', seq: 'integer' }, { where: 'new.seq > ? and new.seq < ?' })
    const rows = [1, 2, 3, 4, 5].map(seq => ({ run_id: 'between', seq }))
    expect((await db.execute(append.statement(rows, [1, 4]))).rowsAffected).toBe(2)
  })

  test('refuses names that would need quoting', () => {
    expect(() => insertRows('t"; drop table x', { a: 'text' })).toThrow(/not a plain SQL name/)
  })
})
