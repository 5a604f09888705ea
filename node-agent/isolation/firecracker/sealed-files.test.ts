import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isInMemory } from '../tmpfs.ts'
import { inMemory, outOfMemory } from './in-memory.ts'
import { JAIL } from './requests.ts'
import { newSealKey, openFiles, sealFiles } from './sealed-files.ts'

let folder: string
const at = (...names: string[]) => join(folder, ...names)
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-fire-'))
  for (const name of ['jail', 'kept', 'next']) await mkdir(at(name))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('what a machine of firecracker wrote of itself', () => {
  const canary = 'the prompt of a session'
  const memory = Buffer.alloc(700_000, `${canary} `)
  beforeEach(async () => {
    await writeFile(at('jail', JAIL.memory), memory)
    await writeFile(at('jail', JAIL.state), `devices ${canary}`)
  })

  it('is kept sealed, and is the same for the one that goes on from it', async () => {
    const key = newSealKey()
    await sealFiles(key, at('jail'), at('kept'))
    for (const file of [JAIL.memory, JAIL.state]) {
      expect((await readFile(at('kept', file))).includes(canary)).toBe(false)
      expect((await stat(at('kept', file))).mode & 0o777).toBe(0o600)
    }
    await openFiles(key, at('kept'), at('next'))
    expect(await readFile(at('next', JAIL.memory))).toEqual(memory)
    expect(await readFile(at('next', JAIL.state), 'utf8')).toBe(`devices ${canary}`)
  })

  it.each([
    ['was changed', (own: Buffer) => own.fill(own[300_000]! ^ 1, 300_000, 300_001)],
    ['was cut short', (own: Buffer) => own.subarray(0, -1)],
    ['lost its last piece', (own: Buffer) => own.subarray(0, 2 * (256 * 1024 + 20))],
  ])('starts nothing where it %s', async (_how, spoil) => {
    const key = newSealKey()
    await sealFiles(key, at('jail'), at('kept'))
    await writeFile(at('kept', JAIL.memory), spoil(await readFile(at('kept', JAIL.memory))))
    await expect(openFiles(key, at('kept'), at('next'))).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('not what was written down'),
    })
  })

  it('is not looked for outside of the jail, whatever the machine put in its place', async () => {
    await writeFile(at('of-the-host'), 'a key of the node')
    await rm(at('jail', JAIL.memory))
    await symlink(at('of-the-host'), at('jail', JAIL.memory))
    await expect(sealFiles(newSealKey(), at('jail'), at('kept'))).rejects.toMatchObject({ code: 'ELOOP' })
    await rm(at('jail', JAIL.memory))
    await mkdir(at('jail', JAIL.memory))
    await expect(sealFiles(newSealKey(), at('jail'), at('kept'))).rejects.toThrow('is no file')
  })

  it('starts nothing with the files changed for each other, or with another key', async () => {
    const key = newSealKey()
    await sealFiles(key, at('jail'), at('kept'))
    await expect(openFiles(newSealKey(), at('kept'), at('next'))).rejects.toMatchObject({ code: 'start_failed' })
    await writeFile(at('kept', JAIL.memory), await readFile(at('kept', JAIL.state)))
    await expect(openFiles(key, at('kept'), at('next'))).rejects.toMatchObject({ code: 'start_failed' })
  })
})

describe.runIf(process.getuid?.() === 0)('the folder of jails', () => {
  it('is in memory alone, takes programs, and is given back', async () => {
    const jails = at('jails')
    await inMemory(jails)
    await inMemory(jails)
    expect(await isInMemory(jails)).toBe(true)
    await writeFile(join(jails, 'program'), '#!/bin/sh\necho ran\n', { mode: 0o755 })
    expect(spawnSync(join(jails, 'program'), { encoding: 'utf8' }).stdout).toBe('ran\n')
    await outOfMemory(jails)
    expect(await isInMemory(jails)).toBe(false)
  })
})
