import fc from 'fast-check'
import { expect, it } from 'vitest'
import { frameOf, frameReader } from './frames.ts'

it('messages come whole, however their bytes arrive', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 300 })), fc.array(fc.integer({ min: 1, max: 40 })), (texts, sizes) => {
      const heard: unknown[] = []
      const read = frameReader(message => heard.push(message))
      let rest = Buffer.concat(texts.map(text => frameOf({ text })))
      for (let at = 0; rest.length > 0; at++) {
        const size = sizes[at % Math.max(1, sizes.length)] ?? rest.length
        read(rest.subarray(0, size))
        rest = rest.subarray(size)
      }
      expect(heard).toEqual(texts.map(text => ({ text })))
    }),
  )
})
