import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toBase64 } from '../../shared/sign/bytes.ts'
import { type MasterKey, masterKey, readMasterKey } from './master-key.ts'
import { type VaultAad, VaultError, vault } from './vault.ts'

const newKey = (fill: number): Promise<MasterKey> => masterKey(new Uint8Array(32).fill(fill))
const place: VaultAad = { tenantId: 'default', recordId: 'openai', field: 'apiKey' }
const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const problemOf = (work: Promise<unknown>) =>
  work.then(
    () => 'opened',
    (error: unknown) => (error instanceof VaultError ? error.problem : 'not a VaultError'),
  )

describe('a sealed text', async () => {
  const box = vault(await newKey(1))

  it('opens where it was sealed, and shows nothing of its text', async () => {
    await fc.assert(
      fc.asyncProperty(text, async given => {
        const sealed = await box.seal(given, place)
        expect(await box.open(sealed, place)).toBe(given)
        if (given.length > 3) expect(sealed).not.toContain(given)
      }),
      { numRuns: 50 },
    )
  })

  it('is another one each time', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => box.seal('sk-secret', place)))
    expect(new Set(all.flatMap(one => one.split('.').slice(2))).size).toBe(100)
  })

  it('does not open at any other place', async () => {
    const sealed = await box.seal('sk-secret', place)
    const parts = fc.record({
      tenantId: fc.constantFrom('default', 'other', 'defaultopenai', ''),
      recordId: fc.constantFrom('openai', 'anthropic', '', 'apiKey'),
      field: fc.constantFrom('apiKey', 'baseUrl', 'openai', ''),
    })
    await fc.assert(
      fc.asyncProperty(parts, async moved => {
        fc.pre(JSON.stringify(moved) !== JSON.stringify(place))
        expect(await problemOf(box.open(sealed, moved))).toBe('broken')
        expect(await problemOf(vault(await newKey(2), [await newKey(1)]).rewrap(sealed, moved))).toBe('broken')
      }),
    )
  })

  it('does not open once any byte of it is changed, or the key of another record is put in', async () => {
    const sealed = await box.seal('sk-secret', place)
    const other = (await box.seal('sk-secret', { ...place, recordId: 'anthropic' })).split('.')
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.'
    await fc.assert(
      fc.asyncProperty(fc.nat(sealed.length - 1), fc.constantFrom(...alphabet), async (at, to) => {
        fc.pre(sealed[at] !== to)
        expect(await problemOf(box.open(sealed.slice(0, at) + to + sealed.slice(at + 1), place))).not.toBe('opened')
      }),
      { numRuns: 300 },
    )
    for (const at of [2, 3]) {
      const mixed = sealed.split('.').with(at, other[at]!).join('.')
      expect(await problemOf(box.open(mixed, place))).toBe('broken')
    }
  })

  it.each(['', 'sk-secret', 'wbs1.a.b', 'wbs2.a.b.c', 'wbs1.a.b.c.d'])('is not "%s"', async given => {
    expect(await problemOf(box.open(given, place))).toBe('not_sealed')
  })
})

describe('another master key', () => {
  it('does not open it, and says whose key is missing', async () => {
    const [old, next] = [await newKey(1), await newKey(2)]
    const sealed = await vault(old).seal('x', place)
    await expect(vault(next).open(sealed, place)).rejects.toThrow(`under the master key ${old.id}`)
  })

  it('takes over a record without touching its text, and the old one is then not needed', async () => {
    const [old, next] = [await newKey(1), await newKey(2)]
    const sealed = await vault(old).seal('x', place)
    const rotating = vault(next, [old])
    expect(rotating.isCurrent(sealed)).toBe(false)
    const moved = await rotating.rewrap(sealed, place)
    expect(moved.split('.')[3]).toBe(sealed.split('.')[3])
    expect(await vault(next).open(moved, place)).toBe('x')
    expect(await rotating.rewrap(moved, place)).toBe(moved)
    expect(await problemOf(vault(old).open(moved, place))).toBe('other_key')
  })

  it('is 32 bytes of base64', () => {
    expect(readMasterKey(toBase64(new Uint8Array(32)) + '\n')).toHaveLength(32)
    for (const bad of ['', 'hunter2', toBase64(new Uint8Array(31))]) expect(readMasterKey(bad)).toBeUndefined()
  })
})
