import { expect, it } from 'vitest'
import { readArguments, writtenArguments } from './tool-arguments.ts'

const nested = (levels: number) => `{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`

it('reads the arguments of a call', () => {
  expect(readArguments(' ')).toEqual({})
  expect(readArguments('{"x":[1]}')).toEqual({ x: [1] })
  expect(readArguments(nested(400))).toEqual(JSON.parse(nested(400)))
})

it('answers a model that nests them too deep, as one that writes no object', () => {
  for (const levels of [401, 9000, 1_000_000]) {
    const read = readArguments(nested(levels))
    expect(read).toEqual({ 'these arguments are nested too deep': nested(levels).slice(0, 500) })
    expect(writtenArguments(read)).toBeUndefined()
  }
})
