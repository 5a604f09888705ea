import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { homeFolder, readOperatorText, readRegular } from './operator-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-given-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('an account that is in no list of accounts has the home folder that HOME names, or none', () => {
  const noEntry = () => {
    throw new Error('uv_os_homedir returned ENOENT')
  }
  expect([homeFolder({ HOME: '/data' }, noEntry), homeFolder({}, noEntry)]).toEqual(['/data', undefined])
  expect(homeFolder({})).toMatch(/^\//)
})

it('reads a file', async () => {
  await writeFile(join(folder, 'key'), 'abc\n')
  expect(await readOperatorText(join(folder, 'key'))).toBe('abc\n')
})

it('reads a pipe that is written to, and does not wait for ever for one that is not', async () => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const said = readOperatorText(pipe)
  execFile('sh', ['-c', `sleep 0.3; (printf ab; sleep 0.3; printf c) > '${pipe}'`])
  expect(await said).toBe('abc')
  await expect(readOperatorText(pipe)).rejects.toThrow('not written to its end in 5 s')
  expect(() => readRegular(pipe)).toThrow('is a folder, a pipe or a device')
}, 20_000)

it('takes no folder and no device', async () => {
  for (const path of [folder, '/dev/zero'])
    await expect(readOperatorText(path)).rejects.toThrow(`${path} is a folder or a device: name a file`)
})
