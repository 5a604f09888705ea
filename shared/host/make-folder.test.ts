import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder } from './make-folder.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-folder-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('creates every missing level, each with the mode that was asked for', async () => {
  await makeFolder(join(folder, 'a/b/c'), 0o700)
  for (const at of ['a', 'a/b', 'a/b/c']) expect((await stat(join(folder, at))).mode & 0o777).toBe(0o700)
})

test('leaves a folder that exists as it is', async () => {
  await mkdir(join(folder, 'open'), { mode: 0o755 })
  await makeFolder(join(folder, 'open'), 0o700)
  expect((await stat(join(folder, 'open'))).mode & 0o777).toBe(0o755)
})

test('several callers may create the same folder at once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => makeFolder(join(folder, 'x/y/z'))))
  expect((await stat(join(folder, 'x/y/z'))).isDirectory()).toBe(true)
})

test('a file in the way is an error that names it', async () => {
  await writeFile(join(folder, 'file'), '')
  await expect(makeFolder(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' })
  await expect(makeFolder(join(folder, 'file/below'))).rejects.toMatchObject({ code: 'EEXIST' })
})

test.runIf(process.platform === 'linux')('ends with an error below /proc, where nothing can be created', async () => {
  await expect(makeFolder('/proc/waybill/data')).rejects.toThrow(/ENOENT|EACCES|EPERM/)
})
