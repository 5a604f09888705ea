import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { openDataKeys } from './data-keys.ts'
import { masterKey } from './master-key.ts'
import { clearRecords, type Records, sealedRecords } from './records.ts'
import { VaultError, vault } from './vault.ts'

const key = (fill: number) => ({ id: `k${fill}`, key: new Uint8Array(32).fill(fill) })
const [old, current] = [key(1), key(2)]
const before = sealedRecords(nativeCipher, { current: old, all: new Map([[old.id, old]]) })
const now = sealedRecords(nativeCipher, {
  current,
  all: new Map([old, current].map(one => [one.id, one])),
})
const place = { record: '01890000-0000-7000-8000-000000000001', field: 'event 1' }
const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('', 'wbd0.x', 'wbd1.k1.x', '{"a":1}'))
const problemOf = (work: () => unknown) => {
  try {
    work()
    return 'opened'
  } catch (error) {
    return error instanceof VaultError ? error.problem : 'not a VaultError'
  }
}

describe('run data', () => {
  it.each([
    ['in clear', clearRecords],
    ['sealed', now],
  ] as [string, Records][])('comes back as it was put, %s, whatever it looks like', (_, records) => {
    fc.assert(
      fc.property(text, given => {
        expect(records.open(records.seal(given, place), place)).toBe(given)
      }),
    )
    const bytes = new Uint8Array([0, 1, 255])
    const kept = records.sealBytes(bytes, place)
    expect([...records.openBytes(kept.content, kept.sealed, place.field)]).toEqual([...bytes])
  })

  it('is still read where it was kept in clear or under an earlier key', () => {
    fc.assert(
      fc.property(text, given => {
        expect(now.open(clearRecords.seal(given, place), place)).toBe(given)
        expect(now.open(before.seal(given, place), place)).toBe(given)
      }),
    )
    expect(problemOf(() => before.open(now.seal('x', place), place))).toBe('other_key')
    expect(problemOf(() => clearRecords.open(now.seal('x', place), place))).toBe('other_key')
  })

  it('is never the same text twice, and shows nothing of what it is', () => {
    const sealed = Array.from({ length: 2000 }, () => now.seal('a secret prompt', place))
    expect(new Set(sealed).size).toBe(2000)
    for (const one of sealed) {
      expect(Buffer.from(one.split('.')[2]!, 'base64url').includes('secret')).toBe(false)
    }
  })

  it('does not open in another run, at another place, or once anything of it is changed', () => {
    const sealed = now.seal('a secret prompt', place)
    expect(problemOf(() => now.open(sealed, { ...place, record: 'other' }))).toBe('broken')
    expect(problemOf(() => now.open(sealed, { ...place, field: 'event 2' }))).toBe('broken')
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    fc.assert(
      fc.property(fc.integer({ min: 8, max: sealed.length - 2 }), fc.constantFrom(...alphabet), (at, to) => {
        fc.pre(sealed[at] !== to)
        expect(problemOf(() => now.open(sealed.slice(0, at) + to + sealed.slice(at + 1), place))).toBe('broken')
      }),
    )
    expect(problemOf(() => now.open(sealed.slice(0, 30), place))).toBe('broken')
    const kept = now.sealBytes(new Uint8Array(100), place)
    expect(problemOf(() => now.openBytes(kept.content.with(50, 1), kept.sealed, place.field))).toBe('broken')
    expect(problemOf(() => now.openBytes(kept.content, kept.sealed, 'blob x'))).toBe('broken')
  })
})

describe('the data key of a store', () => {
  it('is made once, whoever starts first, and opens under its master key alone', async () => {
    const db = await openDb(':memory:')
    await migrate(db, 'runtime', runtimeSteps)
    const box = vault(await masterKey(new Uint8Array(32).fill(5)))
    const all = await Promise.all(Array.from({ length: 8 }, () => openDataKeys(db, box, 1)))
    expect(new Set(all.map(({ current }) => current.id)).size).toBe(1)
    expect(all[0]!.all.size).toBe(1)
    const other = vault(await masterKey(new Uint8Array(32).fill(6)))
    await expect(openDataKeys(db, other, 1)).rejects.toThrow(
      /^the master key is not the one this store was sealed under/,
    )
    db.close()
  })
})
