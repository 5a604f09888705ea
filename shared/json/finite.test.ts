import fc from 'fast-check'
import { expect, it } from 'vitest'
import { nonFiniteAt } from './finite.ts'

it('finds a number that would be sent as null, and nothing else', () => {
  expect(nonFiniteAt(JSON.parse('{"a":[1,{"b/c":-1e400}]}'))).toBe('/a/1/b~1c')
  expect(nonFiniteAt(Number.NaN)).toBe('')
  fc.assert(fc.property(fc.jsonValue(), value => nonFiniteAt(value) === undefined))
})

it('takes what is nested deeper than the stack', () => {
  expect(nonFiniteAt(JSON.parse(`${'['.repeat(50_000)}1e400${']'.repeat(50_000)}`))).toHaveLength(100_000)
})
