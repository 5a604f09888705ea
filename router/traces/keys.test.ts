import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signer } from '../../shared/sign/ed25519.ts'
import { check } from '../../shared/wire/issues.ts'
import { routerKeys } from '../../shared/wire/router/checkpoint.ts'
import { storeFolder, testSigner, testWriter } from '../host/testing/store-folder.ts'
import { publishedKeys, publishKey, trustedKeys } from './keys.ts'
import { promptSalt } from './salt.ts'
import { storedCheckpoints, storedRecords } from './stored-records.ts'
import { sampleTrace } from './testing/records.ts'
import { verifyRecords } from './verify.ts'

let folder: Awaited<ReturnType<typeof storeFolder>>
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

describe('keys', () => {
  it('stay published after a rotation, so that old checkpoints still verify', async () => {
    const db = await folder.open('keys.db')
    const next = await signer(new Uint8Array(32).fill(8))
    for (const [key, time] of [
      [testSigner, '2026-01-01T00:00:00Z'],
      [next, '2026-02-01T00:00:00Z'],
    ] as const) {
      await publishKey(db, key, new Date(time))
      await publishKey(db, key, new Date(time))
      const writer = testWriter(db, { signer: key })
      writer.enqueue(sampleTrace())
      await writer.close()
    }
    const keys = await publishedKeys(db)
    expect(check(routerKeys, keys)).toEqual({ ok: true, value: keys })
    expect(keys.keys.map(({ key_id, retired_at }) => [key_id, retired_at])).toEqual([
      [testSigner.keyId, '2026-02-01T00:00:00.000Z'],
      [next.keyId, undefined],
    ])
    const checkpoints = await storedCheckpoints(db)
    expect(checkpoints.map(({ key_id }) => key_id)).toEqual([testSigner.keyId, next.keyId])
    const report = await verifyRecords({ records: storedRecords(db), checkpoints, keys: trustedKeys(keys) })
    expect(report).toMatchObject({ valid: true, records: 2 })
  })
})

describe('the salt of prompt hashes', () => {
  it('is made once, also when two processes ask at the same moment', async () => {
    const [one, two] = [await folder.open('salt.db'), await folder.open('salt.db')]
    const salts = await Promise.all([promptSalt(one), promptSalt(two), promptSalt(one)])
    expect(salts[0]).toHaveLength(32)
    expect(new Set(salts.map(String)).size).toBe(1)
    expect(await promptSalt(await folder.open('other.db'))).not.toEqual(salts[0])
  })
})
