import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readRegularText } from './read-regular-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-read-key-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('reads a file', async () => {
  await writeFile(join(folder, 'key'), 'abc\n')
  expect(await readRegularText(join(folder, 'key'))).toBe('abc\n')
})

it('does not wait for a writer of a pipe, and takes no folder and no device', async () => {
  execFileSync('mkfifo', [join(folder, 'pipe')])
  for (const path of [join(folder, 'pipe'), folder, '/dev/zero']) {
    await expect(readRegularText(path)).rejects.toThrow(`${path} is a folder, a pipe or a device: name a file`)
  }
})
