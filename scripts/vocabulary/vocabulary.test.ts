import { expect, it } from 'vitest'
import { findWords } from './vocabulary.ts'

const lines = (path: string, text: string) => findWords(path, text).map(({ line }) => line)

it.each([
  ['a pronoun in a comment', 'router/a.ts', 'export const a = 1 // nobody reads it', [1]],
  ['over lines', 'router/a.ts', '/**\n * Whoever asks,\n * is told.\n */\nexport const a = 1', [2, 3]],
  ['in a document', 'docs/a.md', 'Text.\n\nSomebody has begun.', [3, 3]],
  ['a retired name', 'runtime/a.ts', 'export const planes = 1\nexport function noding() {}', [1, 2]],
  ['a retired file', 'runtime/nodes/far-run.ts', 'export const a = 1', [1]],
])('finds %s', (_, path, text, expected) => {
  expect(lines(path, text)).toEqual(expected)
})

it.each([
  ['a text of the program', 'router/a.ts', "export const a = 'nobody'"],
  ['a member of a wire format', 'router/a.ts', "export const a = { 'planes': 1 }"],
  ['history', 'CHANGELOG.md', 'Nobody is told.'],
])('lets through %s', (_, path, text) => {
  expect(lines(path, text)).toEqual([])
})
