import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compactFile } from './compact-file.ts'
import { openDb } from './open-libsql.ts'

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-compact-'))
  path = join(folder, 'store.db')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const FILL = `insert into texts with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
  select i, hex(zeroblob(4000)) from n`

async function free(execute: (sql: string) => Promise<{ rows: readonly unknown[] }>): Promise<number> {
  const { rows } = await execute('select freelist_count as pages from pragma_freelist_count')
  return (rows[0] as { pages: number }).pages
}

it('gives room back some pages at a time, and others write in between', async () => {
  const db = await openDb(path)
  await db.execute('create table texts (id integer primary key, text text not null) strict')
  await db.execute(FILL)
  await db.execute('delete from texts where id % 100 <> 0')
  // A writer that does not wait at all.
  const other = createClient({ url: `file:${path}` })
  const seen = [await free(sql => other.execute(sql))]
  const done = await compactFile(db, {
    pages: 100,
    async between() {
      await other.execute("insert into texts values (null, 'beside')")
      seen.push(await free(sql => other.execute(sql)))
    },
  })
  const steps = seen.slice(1).map((pages, at) => seen[at]! - pages)
  expect(seen[0]).toBeGreaterThan(1500)
  expect(Math.max(...steps)).toBeLessThanOrEqual(101)
  expect(steps.length).toBeGreaterThanOrEqual(15)
  expect(done.after).toBeLessThan(done.before / 10)
  other.close()
  await db.close()
  expect((await stat(path)).size).toBe(done.after)
})

it('writes a file anew that was made elsewhere', async () => {
  const made = createClient({ url: `file:${path}` })
  await made.execute('create table texts (id integer primary key, text text not null) strict')
  await made.execute(FILL)
  await made.execute('delete from texts where id > 10')
  made.close()
  const db = await openDb(path)
  const done = await compactFile(db)
  expect(done.after).toBeLessThan(done.before / 10)
  const { rows } = await db.execute(
    'select (select auto_vacuum from pragma_auto_vacuum) as mode, count(*) as texts from texts',
  )
  expect(rows[0]).toEqual({ mode: 2, texts: 10 })
  await db.close()
})

it('says that the log could not be emptied while another program reads, and empties it afterwards', async () => {
  const db = await openDb(path)
  await db.execute('create table texts (id integer primary key, text text not null) strict')
  await db.execute(FILL)
  const reader = createClient({ url: `file:${path}` })
  const reading = await reader.transaction('read')
  await reading.execute('select count(*) from texts')
  await db.execute('delete from texts where id > 10')
  let waitedMs = 0
  const between = async (ms: number) => {
    waitedMs += ms
  }
  expect((await compactFile(db, { between })).held).toMatch(/another program reads the store/)
  expect((await stat(`${path}-wal`)).size).toBeGreaterThan(0)
  expect(waitedMs).toBeGreaterThanOrEqual(10_000)
  // One that ends meanwhile is waited for.
  const ending = compactFile(db, { between: async () => reading.close() })
  expect((await ending).held).toBeUndefined()
  expect((await stat(`${path}-wal`)).size).toBe(0)
  expect((await stat(path)).size).toBe((await ending).after)
  reader.close()
  await db.close()
})
