import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compilePattern, type Pattern } from './pattern.ts'

const compiled = (source: string): Pattern => {
  const made = compilePattern(source)
  if (typeof made === 'string') throw new Error(made)
  return made
}
const parts = (source: string, text: string) =>
  compiled(source)
    .covered(text)!
    .map(([start, end]) => text.slice(start, end))

describe('a pattern', () => {
  it('finds what a regular expression finds', () => {
    expect(parts('EMP-\\d{4,6}', 'EMP-1234, EMP-12, xEMP-1234567')).toEqual(['EMP-1234', 'EMP-123456'])
    expect(parts('\\b[A-Z]{2}\\d+\\b', 'AB12 xAB1 CD3')).toEqual(['AB12', 'CD3'])
    expect(parts('(?:foo|ba[rz])+?', 'foobar quux baz')).toEqual(['foobar', 'baz'])
    expect(parts('^a|b$', 'aab b')).toEqual(['a', 'b'])
    expect(parts('[^\\s-]+@[]x]', 'me@x you@] a-b@y')).toEqual(['me@x', 'you@]'])
    expect(parts('.é.', '😀é😀')).toEqual(['😀é😀'])
  })

  it('says what is wrong with one that it does not know, and where', () => {
    for (const [source, said] of [
      ['(a', 'a group is not closed at character 3'],
      ['a)', 'a bracket closes nothing at character 2'],
      ['(?=a)', 'lookarounds and named groups are not supported at character 2'],
      ['(a)\\1', '\\1 is not supported at character 6'],
      ['a**', 'a repetition of a repetition needs a group at character 3'],
      ['[z-a]', 'a range of a class runs backwards at character 5'],
      ['[a', 'a class is not closed at character 4'],
      ['a{300}', 'expected at most 200 repetitions, the smaller number first at character 3'],
      ['a{x}', 'expected {m}, {m,} or {m,n} at character 3'],
      ['a*', 'it matches the empty text'],
      ['((a{100}){100})', 'it is too large'],
    ] as const) {
      expect([source, compilePattern(source)]).toEqual([source, said])
    }
  })

  it('covers every match of the same regular expression', () => {
    const piece = fc.constantFrom(
      'a',
      'b',
      '[ab]',
      '.',
      '\\d',
      'a+',
      'b?',
      '(?:ab|b)',
      'a{1,2}',
      '(?:a|ab)+',
      '\\b',
      'c',
    )
    const source = fc.array(piece, { minLength: 1, maxLength: 5 }).map(all => all.join(''))
    const text = fc.array(fc.constantFrom('a', 'b', 'c', '1', ' '), { maxLength: 12 }).map(all => all.join(''))
    fc.assert(
      fc.property(source, text, (source, text) => {
        const made = compilePattern(source)
        if (typeof made === 'string') {
          expect(new RegExp(`^(?:${source.replaceAll('\\b', '')})$`).test('')).toBe(true)
          return
        }
        const covered = made.covered(text)!
        const wanted = new Set<number>()
        for (let start = 0; start < text.length; start++) {
          for (let end = start + 1; end <= text.length; end++) {
            // A look at the rest of the text decides whether this very part is a match in it.
            const exact = new RegExp(`^[^]{${start}}(?:${source})(?=[^]{${text.length - end}}$)`).test(text)
            if (exact && new RegExp(`(?<=^[^]{${start}})(?:${source})(?=[^]{${text.length - end}}$)`).test(text)) {
              for (let at = start; at < end; at++) wanted.add(at)
            }
          }
        }
        const got = new Set(covered.flatMap(([from, to]) => Array.from({ length: to - from }, (_, at) => from + at)))
        expect([...got].sort((a, b) => a - b)).toEqual([...wanted].sort((a, b) => a - b))
      }),
    )
  })

  it('takes time by the length of the text, whatever the pattern', () => {
    const steps = (length: number) => {
      const before = performance.now()
      compiled('(?:(?:a|a)+)+b').covered('a'.repeat(length))
      return performance.now() - before
    }
    steps(1000)
    // A backtracking matcher needs 2^n steps for n characters: it would not come back from forty.
    expect(steps(20_000)).toBeLessThan(20_000)
  })
})
