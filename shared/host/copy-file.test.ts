import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copyOf } from './copy-file.ts'
import { openDb } from './open-libsql.ts'

it('a copy that fails leaves nothing beside its place, which a full disk would need, and the next one is made', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-copy-'))
  const db = await openDb(join(folder, 'store.db'))
  await db.write(['create table t (a text) strict', "insert into t values ('x')"])
  const place = join(folder, 'copies', 'copy.db')
  await expect(copyOf(db, place)).rejects.toThrow('make the folder first')
  const file = join(folder, 'copy.db')
  // The engine leaves its journal beside a copy for which there was no room.
  const fails = {
    ...db,
    async execute(): Promise<never> {
      await writeFile(`${file}.part-journal`, 'a part')
      throw new Error('database or disk is full')
    },
  }
  await expect(copyOf(fails, file)).rejects.toThrow('disk is full')
  expect((await readdir(folder)).filter(name => name.startsWith('copy'))).toEqual([])
  expect(await copyOf(db, file)).toBeGreaterThan(0)
  expect((await readdir(folder)).filter(name => name.startsWith('copy'))).toEqual(['copy.db'])
  await db.close()
  await rm(folder, { recursive: true })
})
