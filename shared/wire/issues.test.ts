import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { int, num, text } from './bounds.ts'
import { check, sentence } from './issues.ts'

const complaints = (schema: z.ZodType, value: unknown) => {
  const result = check(schema, value)
  if (result.ok) throw new Error('expected a complaint')
  return result.details
}

describe('check', () => {
  it('says Required for anything that is missing', () => {
    const schema = z.strictObject({ a: z.string(), b: int(1, 3), c: z.array(z.string()), d: z.enum(['x', 'y']) })
    expect(complaints(schema, {})).toEqual(['a', 'b', 'c', 'd'].map(path => ({ path, message: 'Required' })))
    expect(complaints(schema, undefined)).toEqual([{ path: '', message: 'Required' }])
  })

  it('gives one sentence for a bound, whichever end was missed', () => {
    const message = 'expected an integer from 1 to 200'
    for (const bad of [0, 201, 1.5, '7', null]) expect(complaints(int(1, 200), bad)[0]?.message).toBe(message)
    expect(complaints(num(0, 1), 1.2)[0]?.message).toBe('expected a number from 0 to 1')
    expect(complaints(text(1, 5), '')[0]?.message).toBe('expected a string of 1 to 5 characters')
  })

  it('names each unknown key with its dotted path', () => {
    expect(complaints(z.strictObject({ m: z.strictObject({}) }), { m: { x: 1, y: 2 } })).toEqual([
      { path: 'm.x', message: 'unknown key' },
      { path: 'm.y', message: 'unknown key' },
    ])
  })

  it('gives the nearest known key for one that is mistyped, in a union as well', () => {
    const inner = z.strictObject({ systemPrompt: z.string().optional(), model: z.string().optional() })
    const schema = z.strictObject({ name: z.string(), manifest: z.union([z.string(), inner.prefault({})]) })
    const found = complaints(schema, { nam: 'x', manifest: { systemPromt: '', zebra: 1 } })
    expect(found).toEqual([
      { path: 'name', message: 'Required' },
      { path: 'manifest.systemPromt', message: 'unknown key; did you mean systemPrompt?' },
      { path: 'manifest.zebra', message: 'unknown key' },
      { path: 'nam', message: 'unknown key; did you mean name?' },
    ])
    expect(sentence(found)).toBe('unknown key: manifest.systemPromt; did you mean systemPrompt?')
    expect(sentence(found.slice(3))).toBe('unknown key: nam; did you mean name?')
  })

  it('looks for the meaning of few keys only, in however many objects they stand', () => {
    const schema = z.array(z.strictObject({ name: z.string().optional() }))
    const found = complaints(
      schema,
      Array.from({ length: 40_000 }, () => ({ nam: 1, nome: 2 })),
    )
    expect(found).toHaveLength(100)
    const meant = found.filter(({ message }) => message !== 'unknown key')
    expect(meant).toHaveLength(20)
    expect(meant.at(-1)).toEqual({ path: '9.nome', message: 'unknown key; did you mean name?' })
  })

  it('lists a hundred complaints at most: an answer is not to be several times what was sent', () => {
    const keys = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, 1]))
    for (const [schema, value] of [
      [z.strictObject({ a: z.string() }), keys],
      [z.array(z.enum(['a'])), Object.values(keys)],
    ] as const) {
      const found = check(schema, value)
      expect(found.ok ? [] : found.details).toHaveLength(100)
    }
  })

  it('says of a key that is not allowed what is', () => {
    const prices = z.record(
      z.string().refine(key => key.includes('/'), { error: 'expected <provider>/<model>' }),
      num(0, 1),
    )
    expect(complaints(prices, { large: 1 })).toEqual([
      { path: 'large', message: 'this key is not allowed: expected <provider>/<model>' },
    ])
  })

  it('explains a union by the branch that came closest', () => {
    const schema = z.strictObject({ tools: z.array(z.union([z.string(), z.strictObject({ name: z.string() })])) })
    expect(complaints(schema, { tools: [{ name: 3 }] })).toEqual([
      { path: 'tools.0.name', message: 'expected a string' },
    ])
  })

  it('lists what an enumeration takes', () => {
    expect(complaints(z.enum(['a', 'b']), 'c')[0]?.message).toBe("expected one of 'a', 'b'")
  })
})

describe('sentence', () => {
  it('makes the first complaint a sentence that names the field', () => {
    expect(sentence([{ path: 'agentName', message: 'Required' }])).toBe('agentName is required')
    expect(sentence([{ path: 'a.b', message: 'unknown key' }])).toBe('unknown key: a.b')
    expect(sentence([{ path: 'limit', message: 'expected an integer from 1 to 200' }])).toBe(
      'limit: expected an integer from 1 to 200',
    )
    expect(sentence([{ path: '', message: 'Required' }])).toBe('a body is required')
  })
})
