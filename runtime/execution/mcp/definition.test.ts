import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from '../../../shared/sign/sha256.ts'
import { allowed, definitionOf, effectOf, hashOf, type McpDefinition } from './definition.ts'

const hints = fc.record(
  { readOnlyHint: fc.boolean(), idempotentHint: fc.boolean(), destructiveHint: fc.boolean() },
  { requiredKeys: [] },
)
const tool = fc.record(
  {
    name: fc.string({ minLength: 1, maxLength: 8, unit: 'binary' }),
    description: fc.string({ unit: 'binary' }),
    inputSchema: fc.record({ type: fc.constant('object' as const), properties: fc.constant({}) }),
    annotations: hints,
  },
  { requiredKeys: ['name', 'inputSchema'] },
)
const tools = fc.uniqueArray(tool.map(definitionOf), { selector: ({ name }) => name, maxLength: 6 })

describe('the hash of definitions', () => {
  it('does not depend on their order, and tells every change', () => {
    fc.assert(
      fc.property(tools, fc.nat(), fc.string({ minLength: 1 }), (all, at, more) => {
        expect(hashOf(all.toReversed(), sha256)).toBe(hashOf(all, sha256))
        if (all.length === 0) return
        const place = at % all.length
        const one = all[place]!
        const changed: McpDefinition = { ...one, description: `${one.description ?? ''}${more}` }
        expect(hashOf(all.with(place, changed), sha256)).not.toBe(hashOf(all, sha256))
        expect(hashOf(all.toSpliced(place, 1), sha256)).not.toBe(hashOf(all, sha256))
      }),
    )
  })

  it('holds for texts that are cut in odd places', () => {
    const cut = definitionOf({ name: 'a', description: 'half \ud83d', inputSchema: { type: 'object' } })
    expect(hashOf([JSON.parse(JSON.stringify(cut)) as McpDefinition], sha256)).toBe(hashOf([cut], sha256))
  })
})

it('a definition leaves out what a model is not shown', () => {
  const given = { name: 'a', inputSchema: { type: 'object' as const }, icons: [{ src: 'x' }], _meta: { x: 1 } }
  expect(definitionOf(given)).toEqual({ name: 'a', inputSchema: { type: 'object' } })
})

it.each([
  [{ readOnlyHint: true }, [], 'read'],
  [{ readOnlyHint: true, idempotentHint: true }, ['a'], 'read'],
  [{ idempotentHint: true }, [], 'idempotent'],
  [{}, ['a'], 'idempotent'],
  [{ readOnlyHint: false, idempotentHint: false }, ['b'], 'once'],
] as const)('%j and idempotent: %j is %s', (annotations, idempotent, effect) => {
  const definition = definitionOf({ name: 'a', inputSchema: { type: 'object' }, annotations })
  expect(effectOf(definition, { idempotent: [...idempotent] })).toBe(effect)
})

it('only what allow names can be seen, in the order in which it names it', () => {
  const offered = ['a', 'b', 'c'].map(name => definitionOf({ name, inputSchema: { type: 'object' } }))
  const names = (allow: string[]) => {
    const found = allowed(offered, { name: 'far', allow })
    return typeof found === 'string' ? found : found.map(({ name }) => name)
  }
  expect(names(['c', 'a', 'c'])).toEqual(['c', 'a'])
  expect(names(['*'])).toEqual(['a', 'b', 'c'])
  expect(names(['d'])).toBe('the MCP server far does not offer d, which its allow names; it offers a, b, c')
})
