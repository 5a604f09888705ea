import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../tests/backends/sqld.ts'
import { openDb } from '../host/open-libsql.ts'
import type { Db } from './db.ts'
import { MigrateError, type Migration, migrate } from './migrate.ts'

const first: Migration = { id: 1, name: 'first', sql: 'create table a (n integer);\ninsert into a values (1);' }
const second: Migration = { id: 2, name: "the second's", sql: 'create table b (n integer) -- no semicolon' }
const broken: Migration = { id: 3, name: 'broken', sql: 'create table c (n integer); insert into nowhere values (1)' }

const tables = async (db: Db) =>
  (
    await db.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by name")
  ).rows.map(row => row.name)

async function failure(running: Promise<unknown>): Promise<MigrateError> {
  const thrown = await running.catch((error: unknown) => error)
  if (!(thrown instanceof MigrateError)) throw new Error(`expected a MigrateError, got ${String(thrown)}`)
  return thrown
}

/** `open` gives an empty database; `again` another connection to the same one. */
function suite(name: string, open: () => Promise<Db>, again?: () => Promise<Db>) {
  describe(`migrating a ${name} database`, () => {
    let db: Db
    beforeAll(async () => {
      db = await open()
    })
    afterAll(() => db.close())

    test('applies what is missing, once and in order', async () => {
      expect(await migrate(db, 'part', [first])).toEqual(['first'])
      expect(await migrate(db, 'part', [first, second])).toEqual(["the second's"])
      expect(await migrate(db, 'part', [first, second])).toEqual([])
      expect(await tables(db)).toEqual(['a', 'b', 'schema_steps'])
      expect((await db.execute('select n from a')).rows).toHaveLength(1)
    })

    test('keeps nothing of a step that fails, and can go on once it is mended', async () => {
      const error = await failure(migrate(db, 'part', [first, second, broken]))
      expect(error.problem).toBe('failed')
      expect(error.message).toMatch(/^Step 3 "broken" of the part database failed: .*nowhere/)
      expect(await tables(db)).toEqual(['a', 'b', 'schema_steps'])
      expect(await migrate(db, 'part', [first, second, { ...broken, sql: 'create table c (n integer)' }])).toEqual([
        'broken',
      ])
    })

    test('only marks a step where its condition finds a row', async () => {
      const step = (n: number): Migration => ({ id: n, name: `made ${n}`, sql: `create table made_${n} (n)` })
      const list = [
        { ...step(1), unless: "select 1 where 'a' = 'b'" },
        { ...step(2), unless: 'select 1 from schema_steps' },
      ]
      expect(await migrate(db, 'conditions', list)).toEqual(['made 1', 'made 2'])
      expect(await migrate(db, 'conditions', list)).toEqual([])
      expect((await tables(db)).filter(name => String(name).startsWith('made'))).toEqual(['made_1'])
    })

    test('leaves a newer database alone and says what to do', async () => {
      const before = (await db.execute('select * from schema_steps order by id')).rows.map(row => ({ ...row }))
      const error = await failure(migrate(db, 'part', [first, second]))
      expect(error.problem).toBe('newer')
      expect(error.message).toMatch(/made by a newer version .*upgrade this program, or restore a backup/)
      expect((await db.execute('select * from schema_steps order by id')).rows.map(row => ({ ...row }))).toEqual(before)
    })

    test('notices an applied step whose text was changed, but not a change of line ends', async () => {
      const rest = [second, { ...broken, sql: 'create table c (n integer)' }]
      const error = await failure(migrate(db, 'part', [{ ...first, sql: 'create table a (m integer)' }, ...rest]))
      expect(error.problem).toBe('changed')
      expect(error.message).toMatch(/^Step 1 "first" of the part database was applied with other text/)
      expect(await migrate(db, 'part', [{ ...first, sql: first.sql.replace('\n', '\r\n') }, ...rest])).toEqual([])
    })

    test('says so where a database is older than the first step that this program has', async () => {
      await migrate(db, 'older', [{ id: 10, name: 'ten', sql: 'create table of_before (n)' }])
      const error = await failure(
        migrate(db, 'older', [{ id: 100, name: 'baseline', sql: 'create table all_of_it (n)' }]),
      )
      expect(error.problem).toBe('gap')
      expect(error.message).toMatch(
        /^The older database was made by a version before .* and is not read: use that version/,
      )
    })

    test('notices a step inserted before an applied one', async () => {
      await migrate(db, 'gap', [{ id: 10, name: 'ten', sql: 'create table ten (n)' }])
      const list = [
        { id: 5, name: 'five', sql: 'create table five (n)' },
        { id: 10, name: 'ten', sql: 'create table ten (n)' },
      ]
      expect((await failure(migrate(db, 'gap', list))).problem).toBe('gap')
    })

    test('keeps the steps of two parts apart', async () => {
      expect(await migrate(db, 'other', [{ id: 1, name: 'own', sql: 'create table own (n)' }])).toEqual(['own'])
    })

    if (again) {
      test('two connections at once apply each step exactly once', async () => {
        const other = await again()
        const list = Array.from({ length: 8 }, (_, index) => ({
          id: index + 1,
          name: `race ${index + 1}`,
          sql: `create table race_${index + 1} (n); insert into a values (${100 + index})`,
        }))
        const [one, two] = await Promise.all([migrate(db, 'race', list), migrate(other, 'race', list)])
        expect([...one, ...two].sort()).toEqual(list.map(step => step.name))
        expect((await db.execute('select count(*) as n from a where n >= 100')).rows[0]?.n).toBe(8)
        other.close()
      })
    }
  })
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-migrate-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

suite(
  'file',
  () => openDb(join(folder, 'one.db')),
  () => openDb(join(folder, 'one.db')),
)
suite('memory', () => openDb(':memory:'))

if (await sqldAvailable()) {
  describe('with a libSQL server', () => {
    let server: Sqld
    beforeAll(async () => {
      server = await startSqld()
    })
    afterAll(() => server?.stop())
    suite(
      'remote',
      () => openDb(server.primaryUrl),
      () => openDb(server.primaryUrl),
    )
  })
}

test('three processes that open and migrate one new file together all succeed', async () => {
  const path = join(folder, 'shared.db')
  const script = `import { openDb } from ${JSON.stringify(new URL('../host/open-libsql.ts', import.meta.url).href)}
import { migrate } from ${JSON.stringify(new URL('./migrate.ts', import.meta.url).href)}
const db = await openDb(${JSON.stringify(path)})
const list = Array.from({ length: 10 }, (_, i) => ({ id: i + 1, name: 'step ' + (i + 1), sql: 'create table t' + i + ' (n)' }))
console.log(JSON.stringify(await migrate(db, 'part', list)))`
  const outputs = await Promise.all(
    [1, 2, 3].map(() => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])),
  )
  const applied = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[])
  expect(applied).toHaveLength(10)
  expect(new Set(applied).size).toBe(10)
})

test('a read-only database that is up to date passes, one that needs work is refused', async () => {
  const path = join(folder, 'read-only.db')
  const writer = await openDb(path)
  await migrate(writer, 'part', [first])
  const reader = await openDb(path, { readOnly: true })
  expect(await migrate(reader, 'part', [first])).toEqual([])
  expect((await failure(migrate(reader, 'part', [first, second]))).problem).toBe('read_only')
  reader.close()
  writer.close()
})

test.each([
  ['out of order', [second, first]],
  ['with the same id twice', [first, first]],
  ['that commit by themselves', [{ id: 1, name: 'sly', sql: 'create table x (n); commit; create table y (n);' }]],
])('steps %s are refused before the database is touched', async (_, list) => {
  const db = await openDb(':memory:')
  expect((await failure(migrate(db, 'part', list))).problem).toBe('bad_list')
  expect(await tables(db)).toEqual([])
  db.close()
})
