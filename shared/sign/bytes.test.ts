import { expect, it } from 'vitest'
import { fromBase64 } from './bytes.ts'

it('padding is at most two signs, and a megabyte of them is refused as soon as anything else', () => {
  for (const text of ['AA', 'AA=', 'AA==']) expect(fromBase64(text)).toEqual(new Uint8Array(1))
  const before = performance.now()
  for (const text of ['AA===', '='.repeat(1e6), `${'='.repeat(1e6)}A`, `${'A='.repeat(5e5)}A`])
    expect(() => fromBase64(text)).toThrow('expected base64 text')
  expect(performance.now() - before).toBeLessThan(1000)
})
