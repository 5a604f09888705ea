import fc from 'fast-check'
import { expect, it } from 'vitest'
import { completionAt } from './complete-names.ts'

const leaf = (name: string, values: string[] = []) => ({ name, about: '', values, inside: [] })
const MEMBERS = [
  leaf('model'),
  { ...leaf('limits'), inside: [leaf('maxTurns'), leaf('maxSteps')] },
  { ...leaf('tools'), inside: [leaf('name'), leaf('effect', ['"read"', '"once"'])] },
]

/** `|` is the caret. */
function at(marked: string) {
  const caret = marked.indexOf('|')
  const text = marked.replace('|', '')
  const found = completionAt(text, caret, MEMBERS)
  const [first] = found?.options ?? []
  return (
    found && {
      words: found.options.map(({ words }) => words),
      becomes: first && text.slice(0, found.from) + first.text + text.slice(found.to),
    }
  )
}

it.each([
  ['{ | }', ['model', 'limits', 'tools'], '{ "model":  }'],
  ['{ "mo|" }', ['model'], '{ "model":  }'],
  ['{ "mo|": "auto" }', ['model'], '{ "model": "auto" }'],
  ['{ "limits": { "model": 1, "max| } }', ['maxTurns', 'maxSteps'], '{ "limits": { "model": 1, "maxTurns":  } }'],
  ['{ "limits": { "maxTurns": 3 }, "t|"', ['tools'], '{ "limits": { "maxTurns": 3 }, "tools": '],
  ['{ "tools": [{ "name": "x", "effect": "r|" }] }', ['"read"'], '{ "tools": [{ "name": "x", "effect": "read" }] }'],
])('%s', (marked, words, becomes) => {
  expect(at(marked)).toEqual({ words, becomes })
})

it('says nothing where nothing is known', () => {
  for (const marked of ['|', '{ "other": { "| } }', '{ "model": "|" }', '{ "tools": ["|"] }', '{ "zzz|" }'])
    expect(at(marked), marked).toBe(undefined)
})

it('reads any text to its end', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', '\n', 'm', ' ') }),
      fc.nat(),
      (text, nth) => {
        completionAt(text, nth % (text.length + 1), MEMBERS)
      },
    ),
  )
})
