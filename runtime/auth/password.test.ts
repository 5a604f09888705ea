import { describe, expect, it } from 'vitest'
import { nativeScrypt } from '../../shared/host/native-crypto.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { passwords, portableScrypt } from './password.ts'

describe('passwords', () => {
  const native = passwords(nativeScrypt)

  it('are stored as a PHC string of the contract’s cost with a salt of their own', async () => {
    const [one, two] = await Promise.all([native.hash('correct horse battery'), native.hash('correct horse battery')])
    expect(one).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(one).not.toBe(two)
  })

  it('made by the native derivation are verified by the portable one, and the other way round', async () => {
    const portable = passwords(portableScrypt)
    const [made, back] = [await native.hash('pässword 1234'), await portable.hash('pässword 1234')]
    expect(await portable.compare('pässword 1234', [made])).toEqual([true])
    expect(await native.compare('pa\u0308ssword 1234', [back, made])).toEqual([true, true])
    expect(await native.compare('passwort 1234', [back])).toEqual([false])
  })

  it('derive what RFC 7914 §12 lists', async () => {
    const cost = { N: 1024, r: 8, p: 16 }
    for (const scrypt of [portableScrypt, nativeScrypt]) {
      const bytes = await scrypt(utf8('password'), utf8('NaCl'), 64, cost)
      expect(Array.from(bytes.slice(0, 8))).toEqual([0xfd, 0xba, 0xbe, 0x1c, 0x9d, 0x34, 0x72, 0x00])
    }
  })

  it('cost nobody as much as somebody', async () => {
    const costs: unknown[] = []
    const counted = passwords(async (password, salt, bytes, cost) => {
      costs.push([cost, salt.length, bytes])
      return nativeScrypt(password, salt, bytes, { ...cost, N: 2 })
    })
    expect(await counted.compare('correct horse battery', [])).toEqual([])
    const known = await counted.hash('correct horse battery')
    const other = await counted.hash('another long password', known)
    expect(await counted.compare('correct horse battery', [known])).toEqual([true])
    expect(await counted.compare('another long password', [known, other, known])).toEqual([false, true, false])
    expect(new Set(costs.map(one => JSON.stringify(one))).size).toBe(1)
    expect(costs).toHaveLength(5)
    await expect(counted.hash('another long password', 'no PHC string')).rejects.toThrow(TypeError)
  })
})
