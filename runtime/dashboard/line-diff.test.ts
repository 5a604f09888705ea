import fc from 'fast-check'
import { expect, it } from 'vitest'
import { changesOf, lineDiff } from './line-diff.ts'

const text = fc.array(fc.constantFrom('{', '}', 'a', 'b', 'c', ''), { maxLength: 30 }).map(lines => lines.join('\n'))

it('gives back both texts, each line once', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = lineDiff(before, after)
      const of = (kind: 'added' | 'gone') =>
        lines
          .filter(line => line.kind !== kind)
          .map(line => line.text)
          .join('\n')
      expect([of('added'), of('gone')]).toEqual([before, after])
    }),
  )
})

it('names only what changed, and leaves out what is far from it', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i}`)
  const after = before.with(10, 'another').toSpliced(15, 1)
  const lines = lineDiff(before.join('\n'), after.join('\n'))
  expect(lines.filter(({ kind }) => kind !== 'same')).toEqual([
    { kind: 'gone', text: 'line 10' },
    { kind: 'added', text: 'another' },
    { kind: 'gone', text: 'line 15' },
  ])
  const shown = changesOf(lines, 1)
  expect(shown.map(line => line?.text ?? '…')).toEqual([
    '…',
    'line 9',
    'line 10',
    'another',
    'line 11',
    '…',
    'line 14',
    'line 15',
    'line 16',
    '…',
  ])
  expect(changesOf(lineDiff('same', 'same'))).toEqual([undefined])
})
