import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isDeeper } from '../http/validate.ts'

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

it('knows how deep a value is nested, whatever brackets its texts hold', () => {
  const texts = fc.constantFrom('[', ']]', '{"', '\\', '\\"[', 'x')
  const { value } = fc.letrec(tie => ({
    value: fc.oneof({ maxDepth: 6 }, texts, fc.array(tie('value')), fc.dictionary(texts, tie('value'))),
  }))
  fc.assert(
    fc.property(value, fc.nat(8), (made, most) => {
      expect(isDeeper(JSON.stringify(made), most)).toBe(depthOf(made) > most)
    }),
  )
})
