import fc from 'fast-check'
import { expect, it } from 'vitest'
import { utf8 } from '../sign/bytes.ts'
import { newBoxKeys, openSealed, sealTo } from './sealed-payload.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

it('opens for its keys at its place, and for nothing else', async () => {
  const [keys, others] = await Promise.all([newBoxKeys(), newBoxKeys()])
  await fc.assert(
    fc.asyncProperty(fc.string(), fc.nat(), async (plain, at) => {
      const box = await sealTo(keys.publicKey, utf8(plain), 'input/1')
      expect(text(await openSealed(keys, box, 'input/1'))).toBe(text(utf8(plain)))
      await expect(openSealed(others, box, 'input/1')).rejects.toThrow('does not open')
      await expect(openSealed(keys, box, 'input/2')).rejects.toThrow('input/2')
      const changed = Uint8Array.from(box)
      changed[at % changed.length]! ^= 1
      await expect(openSealed(keys, changed, 'input/1')).rejects.toThrow('does not open')
    }),
    { numRuns: 20 },
  )
  await expect(openSealed(keys, new Uint8Array(3), 'input/1')).rejects.toThrow('does not open')
})

it('seals the same text differently each time', async () => {
  const { publicKey } = await newBoxKeys()
  const [a, b] = [await sealTo(publicKey, utf8('x'), 'p'), await sealTo(publicKey, utf8('x'), 'p')]
  expect(a).not.toEqual(b)
})
