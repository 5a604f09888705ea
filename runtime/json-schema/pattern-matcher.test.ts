import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { patternMatcher } from './pattern-matcher.ts'

const free = () => {}

function matches(source: string, text: string): boolean {
  const made = patternMatcher(source)
  if (typeof made === 'string') throw new Error(`${source}: ${made}`)
  return made.matches(text, free)
}

/**
 * What the engine finds when it begins at whole characters only, as the language says. Left to search by itself it may begin within
 * a pair of surrogates: V8 finds `(?!(?=[😀-😃]*$))` inside of 😂.
 */
function isFound(source: string, text: string): boolean {
  const pattern = new RegExp(source, 'uy')
  for (let at = 0; at <= text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) {
    pattern.lastIndex = at
    if (pattern.test(text)) return true
  }
  return false
}

const EMAIL = "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"
const DATE =
  '^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))$'

describe('a pattern of a schema', () => {
  it.each([
    [EMAIL, ['ada@example.com', 'a.b+c@mail.example.org'], ['ada@example', '.a@example.com', 'a..b@example.com', '']],
    [DATE, ['2024-02-29', '2026-11-23'], ['2023-02-29', '2026-13-01', '2026-11-23T']],
    ['^(?=.*[A-Z])(?=.*\\d).{8,}$', ['Passw0rdly'], ['password1', 'Short1']],
    ['^(?<year>\\d{4})$', ['2026'], ['26']],
    ['^\\p{Lu}\\p{L}*$', ['Ångström', 'Ünïcode'], ['ångström', 'A1']],
    ['^[\\p{Script=Greek}\\s]+$', ['αβγ δ'], ['abc']],
    ['^.$', ['😀', 'é'], ['ab', '\n', '\u2028']],
    ['^\\u{1F600}|\\ud83d\\ude00$', ['😀x', 'x😀'], ['x']],
    ['^[\\x41-\\x43\\b\\0\\cJ]+$', ['ABC\b\0\n'], ['D']],
    ['[]', [], ['', 'a', ']']],
    ['^[^]$', ['a', '\n'], ['', 'ab']],
    ['', ['', 'a'], []],
    ['\\bfoo\\b', ['a foo.'], ['afoo']],
    ['^(?:a?b?)*$', ['', 'abba', 'bbaa'], ['abc']],
    ['^a(?!b(?=c))', ['abd', 'ac'], ['abc']],
    ['^\\/[^/]+\\/$', ['/a-b/'], ['//']],
  ])('%s', (source, fitting, others) => {
    for (const text of [...fitting, ...others]) {
      expect([text, matches(source, text)]).toEqual([text, fitting.includes(text)])
      expect([text, new RegExp(source, 'u').test(text)]).toEqual([text, fitting.includes(text)])
    }
  })

  it.each([
    ['(a)\\1', '\\1 is not supported at character 6'],
    ['(?<=a)b', 'looks behind and flags in a group are not supported at character 2'],
    ['(?<!a)b', 'looks behind and flags in a group are not supported at character 2'],
    ['(', 'it is not a regular expression'],
    ['a{,5}', 'it is not a regular expression'],
    ['.{1,65535}', 'expected at most 2000 repetitions, the smaller number first at character 3'],
    ['(.{2000}){2000}', 'it is too large'],
    ['((((((){2000}){2000}){2000}){2000}){2000}){2000}', 'it is too large'],
    [`${'('.repeat(101)}${')'.repeat(101)}`, 'groups may be nested 100 deep at character 102'],
    ['a'.repeat(10_001), 'it has more than 10000 characters'],
  ])('%.30s cannot be used', (source, said) => {
    expect(patternMatcher(source)).toBe(said)
  })

  it('finds what a regular expression finds', () => {
    const piece = fc.letrec<{ node: string; atom: string }>(tie => ({
      atom: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(
          'a',
          'b',
          '.',
          '\\d',
          '\\W',
          '[ab]',
          '[^a]',
          '\\p{L}',
          '😀',
          '[😀-😃]',
          '\\s',
          '\\b',
          '\\B',
          '^',
          '$',
        ),
        tie('node').map(inner => `(?:${inner})`),
        tie('node').map(inner => `(?=${inner})`),
        tie('node').map(inner => `(?!${inner})`),
      ),
      node: fc
        .array(fc.tuple(tie('atom'), fc.constantFrom('', '', '?', '*', '+', '{2}', '{0,2}', '{1,}', '*?')), {
          maxLength: 4,
        })
        .map(all =>
          all.map(([atom, times]) => (/^(?:\\b|\\B|\^|\$|\(\?[=!].*)$/i.test(atom) ? atom : atom + times)).join(''),
        )
        .chain(one => fc.constantFrom(one, `${one}|b`, `a|${one}`)),
    })).node
    const text = fc
      .array(fc.constantFrom('a', 'b', '1', ' ', '\n', '😀', '😂', '\ud83d', '\ude00'), { maxLength: 8 })
      .map(all => all.join(''))
    fc.assert(
      fc.property(piece, text, (source, text) => {
        expect([source, text, matches(source, text)]).toEqual([source, text, isFound(source, text)])
      }),
      { numRuns: 500, examples: [['(?!(?=[😀-😃]*$))', '😂']] },
    )
  })

  it.each(['^(a+)+$', '^(a|a)*$', '^(?=(a*)*$)(a+)+$', '^(?!(a+)+$)', '(?:(?:a?)*)*b'])(
    '%s takes time by the length',
    source => {
      let steps = 0
      const made = patternMatcher(source)
      if (typeof made === 'string') throw new Error(made)
      made.matches(`${'a'.repeat(20_000)}!`, more => {
        steps += more
      })
      expect(steps).toBeLessThan(20_000 * 100)
    },
  )
})
