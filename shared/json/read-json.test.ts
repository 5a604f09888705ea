import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from './read-json.ts'

const name = fc.oneof(
  fc.string({ maxLength: 4 }),
  fc.constantFrom('\\', '"', '\n', 'L\\', 'L\n', 'L"', '__proto__', '\u2028'),
)
const value = fc.letrec<{ value: unknown; object: unknown }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map(members => new Map(members)),
})).value

/** JSON text, with spaces, made from maps so that no object of the engine ever has the names. */
function textOf(value: unknown): string {
  if (value instanceof Map)
    return `{ ${[...value].map(([key, v]) => `${JSON.stringify(key)} : ${textOf(v)}`).join(' ,\n')}}`
  return Array.isArray(value) ? `[${value.map(textOf).join(', ')}]` : JSON.stringify(value)
}

/** The same names and values of what was read. */
function isMeant(read: unknown, meant: unknown): boolean {
  if (meant instanceof Map) {
    const names = Object.getOwnPropertyNames(read)
    return (
      names.length === meant.size &&
      names.every(key => meant.has(key) && isMeant(Object.getOwnPropertyDescriptor(read, key)?.value, meant.get(key)))
    )
  }
  if (Array.isArray(meant))
    return Array.isArray(read) && read.length === meant.length && read.every((v, i) => isMeant(v, meant[i]))
  return JSON.stringify(read) === JSON.stringify(meant)
}

function isJson(text: string) {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

describe('reading JSON', () => {
  it('gives every member the name that the text says, whatever was read before', () => {
    fc.assert(
      fc.property(value, meant => {
        const near = textOf(meant).replaceAll(/\\[nt"](?=[^"]*"\s*:)/g, '\\\\')
        // Leaves an object of the same shape behind, with a backslash where this one has an escape.
        if (isJson(near)) JSON.parse(near)
        expect(isMeant(readJson(textOf(meant)), meant)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['a quote', '{"quote":[],"\\\\":0}', '{"quote":1,"\\"":2}', '"'],
    ['a line end', '{"line":[],"L\\\\":0}', '{"line":1,"L\\n":2}', 'L\n'],
    ['a letter', '{"letter":[],"passw\\\\":0}', '{"letter":1,"passw\\u006f":2}', 'passwo'],
  ])('reads %s in a name, where the engine takes it for a backslash', (_, before, text, name) => {
    JSON.parse(before)
    expect(Object.keys(readJson(text) as object)[1]).toBe(name)
  })

  it('throws what the engine throws', () => {
    for (const text of ['', '{', '{"\\n":1,}', '{"\\n":}', '"\\n', '[1 2]'])
      expect(() => readJson(text)).toThrow(SyntaxError)
  })

  it('reads what is nested deep, and the last of two members of one name', () => {
    const deep = `${'[{"\\n":'.repeat(20_000)}1${'}]'.repeat(20_000)}`
    expect(Array.isArray(readJson(deep))).toBe(true)
    expect(readJson('{"a\\n":1,"b":2,"a\\u000a":3}')).toEqual({ 'a\n': 3, b: 2 })
  })

  it('takes time in proportion to the text, also where nearly every character is an escape', () => {
    const time = (length: number) => {
      const text = `{"a":"${'\\"'.repeat(length)}","\\n":1}`
      const start = performance.now()
      readJson(text)
      return performance.now() - start
    }
    time(10_000)
    expect(time(400_000)).toBeLessThan(1000)
  })
})
