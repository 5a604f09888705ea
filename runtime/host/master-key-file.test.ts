import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readEnv } from '../../shared/env/read-env.ts'
import { createLog } from '../../shared/log/log.ts'
import { toBase64 } from '../../shared/sign/bytes.ts'
import { runtimeEnv } from '../env.ts'
import { createRuntime } from '../runtime.ts'
import { masterKeyOf } from './master-key-file.ts'
import { openStore } from './open.ts'

let folder: string
let lines: string[]
const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(line) })

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-master-'))
  lines = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const env = (vars: Record<string, string> = {}) =>
  readEnv(runtimeEnv, { PLATFORM_DATA_DIR: join(folder, 'data'), ...vars })
const key = (fill: number) => toBase64(new Uint8Array(32).fill(fill))

it('makes a key at the first start that only this account can read, and keeps it', async () => {
  const made = await masterKeyOf(env(), log)
  const path = join(folder, 'data', 'master.key')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(join(folder, 'data'))).mode & 0o777).toBe(0o700)
  expect(await masterKeyOf(env(), log)).toEqual(made)
  expect(await readdir(join(folder, 'data'))).toEqual(['master.key'])
  expect(lines).toEqual([])
})

it('makes one key for processes that start together', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => masterKeyOf(env(), log)))
  expect(new Set(all.map(toBase64)).size).toBe(1)
})

it('takes the key of the environment before that of a named file', async () => {
  const file = join(folder, 'key')
  await writeFile(file, key(2) + '\n', { mode: 0o600 })
  expect(await masterKeyOf(env({ PLATFORM_MASTER_KEY_FILE: file }), log)).toEqual(new Uint8Array(32).fill(2))
  const both = env({ PLATFORM_MASTER_KEY_FILE: file, PLATFORM_MASTER_KEY: key(1) })
  expect(await masterKeyOf(both, log)).toEqual(new Uint8Array(32).fill(1))
  await chmod(file, 0o644)
  await masterKeyOf(env({ PLATFORM_MASTER_KEY_FILE: file }), log)
  expect(lines.join()).toMatch(/chmod 600/)
})

it('says what is wrong with a key, and never shows it', async () => {
  expect(() => env({ PLATFORM_MASTER_KEY: 'hunter2hunter2' })).toThrow(/^PLATFORM_MASTER_KEY: expected 32 bytes/)
  expect(() => env({ PLATFORM_MASTER_KEY: 'hunter2hunter2' })).not.toThrow(/hunter2/)
  expect(() => env({ PLATFORM_BOOTSTRAP_KEY: 'wb_live_short' })).toThrow(/^PLATFORM_BOOTSTRAP_KEY: expected wb_live_/)
  const file = join(folder, 'key')
  await expect(masterKeyOf(env({ PLATFORM_MASTER_KEY_FILE: file }), log)).rejects.toThrow(/cannot be read/)
  await writeFile(file, 'hunter2')
  await expect(masterKeyOf(env({ PLATFORM_MASTER_KEY_FILE: file }), log)).rejects.toThrow(/does not hold 32 bytes/)
})

it('does not start with another key than the one the store was sealed under', async () => {
  const readiness = async (fill: number) => {
    const db = await openStore(env(), { create: true })
    const runtime = createRuntime({ db, masterKey: new Uint8Array(32).fill(fill) })
    try {
      await runtime.ready()
    } catch (error) {
      db.close()
      throw error
    }
    const answer = await runtime.fetch(new Request('http://local/readyz'))
    const { checks } = (await answer.json()) as { checks: { masterKey?: string } }
    await runtime.close()
    db.close()
    return [answer.status, checks.masterKey]
  }
  expect(await readiness(1)).toEqual([200, 'ok'])
  await expect(readiness(2)).rejects.toThrow(/^the master key is not the one this store was sealed/)
  expect(await readiness(1)).toEqual([200, 'ok'])
  expect((await readFile(join(folder, 'data', 'waybill.db'))).includes(Buffer.from(key(1)))).toBe(false)
})

it('makes no key beside a store that is sealed under one that is gone', async () => {
  const db = await openStore(env(), { create: true })
  const runtime = createRuntime({ db, masterKey: await masterKeyOf(env(), log) })
  await runtime.ready()
  await runtime.close()
  await db.close()
  const path = join(folder, 'data', 'master.key')
  const kept = await readFile(path)
  await rm(path)
  await expect(masterKeyOf(env(), log)).rejects.toThrow(/master.key is not there, and the store is sealed under it/)
  expect(await stat(path).catch(() => undefined)).toBeUndefined()
  await writeFile(path, kept, { mode: 0o600 })
  expect(toBase64(await masterKeyOf(env(), log))).toBe(String(kept).trim())
})
