import fc from 'fast-check'
import { expect, it } from 'vitest'
import { lineDiff } from './line-diff.ts'
import { diffRows, sideBySide } from './side-by-side.ts'

const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1 }).map(lines => lines.join('\n'))

it('holds every line of both texts once, in their order', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const rows = diffRows(lineDiff(before, after))
      const of = (side: 'before' | 'after') => rows.flatMap(row => row[side] ?? []).join('\n')
      expect([of('before'), of('after')]).toEqual([before, after])
    }),
  )
})

it('leaves out what did not change, with some lines around each change', () => {
  const lines = Array.from({ length: 40 }, (_, i) => `line ${i}`)
  const other = lines.with(20, '<b>')
  const shown = String(sideBySide(['1', lines.join('\n')], ['2', other.join('\n')]))
  expect(shown.match(/<tr>/g)).toHaveLength(8)
  expect(shown.match(/omitted/g)).toHaveLength(2)
  expect(shown).toContain('&lt;b&gt;')
  expect(String(sideBySide(['1', 'a'], ['2', 'a']))).toContain('the same')
})
