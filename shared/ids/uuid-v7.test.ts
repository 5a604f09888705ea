import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { uuidv7 } from './uuid-v7.ts'

describe('uuidv7', () => {
  it('has the version and variant bits, carries its time and sorts by it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer({ min: 0, max: 2 ** 48 - 1 }), (a, b) => {
        const [first, second] = [uuidv7(a), uuidv7(b)]
        expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(Number.parseInt(first.replaceAll('-', '').slice(0, 12), 16)).toBe(a)
        if (a < b) expect(first < second).toBe(true)
      }),
    )
  })

  it('does not repeat', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => uuidv7(5))).size).toBe(10_000)
  })
})
