import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toBase64 } from '../../shared/sign/bytes.ts'
import { readSigningKey, SigningKeyError } from './signing-key.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-key-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the signing key', () => {
  it('is made beside the store at the first start, for its owner only, and read again', async () => {
    const dbPath = join(folder, 'router.db')
    const [one, two] = await Promise.all([readSigningKey({ dbPath }), readSigningKey({ dbPath })])
    expect(one?.keyId).toMatch(/^[0-9a-f]{16}$/)
    expect(two?.keyId).toBe(one?.keyId)
    expect((await readSigningKey({ dbPath }))?.keyId).toBe(one?.keyId)
    expect((await stat(`${dbPath}.key`)).mode & 0o777).toBe(0o600)
    await chmod(`${dbPath}.key`, 0o644)
    await readSigningKey({ dbPath })
    expect((await stat(`${dbPath}.key`)).mode & 0o777).toBe(0o600)
    expect(Buffer.from(await readFile(`${dbPath}.key`, 'utf8'), 'base64')).toHaveLength(32)
  })

  it('comes from the environment first, then from a named file', async () => {
    const [a, b] = [1, 2].map(byte => toBase64(new Uint8Array(32).fill(byte)))
    const keyFile = join(folder, 'kept.key')
    await writeFile(keyFile, `${b}\n`)
    const dbPath = join(folder, 'none.db')
    const given = await readSigningKey({ key: a, keyFile, dbPath })
    const kept = await readSigningKey({ keyFile, dbPath })
    expect(given?.keyId).not.toBe(kept?.keyId)
    expect(await stat(`${dbPath}.key`).catch(() => 'none')).toBe('none')
    expect(await readSigningKey({})).toBeUndefined()
  })

  it.each([
    ['no base64', { key: 'äöü' }, 'no base64'],
    ['too short', { key: toBase64(new Uint8Array(31)) }, '31 bytes'],
    ['a file that is not there', { keyFile: '/nowhere/key' }, 'cannot be read'],
    ['a folder that is not there', { dbPath: '/nowhere/router.db' }, 'ROUTER_SIGNING_KEY'],
  ])('refuses %s with a sentence that does not hold the key', async (_, options, words) => {
    const error = await readSigningKey(options).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SigningKeyError)
    expect(String(error)).toContain(words)
    if ('key' in options) expect(String(error)).not.toContain(options.key)
  })
})
