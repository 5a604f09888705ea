import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Alias, dropAbsent, flag, fromAliases, query, withAliases } from './aliases.ts'
import { check } from './issues.ts'

const aliases: readonly Alias[] = [
  { from: 'agent_name', to: 'agentName' },
  { from: 'template', to: 'config.input' },
]

describe('fromAliases', () => {
  it('moves an alias to the name of the contract, also one level down', () => {
    expect(fromAliases({ agent_name: 'a', template: { x: 1 } }, aliases)).toEqual({
      value: { agentName: 'a', config: { input: { x: 1 } } },
      details: [],
    })
  })

  it('keeps the siblings of a nested name', () => {
    expect(fromAliases({ config: { other: 1 }, template: {} }, aliases).value).toEqual({
      config: { other: 1, input: {} },
    })
  })

  it('drops an alias that says the same', () => {
    expect(fromAliases({ agentName: 'a', agent_name: 'a' }, aliases)).toEqual({
      value: { agentName: 'a' },
      details: [],
    })
  })

  it('complains when alias and name differ', () => {
    expect(fromAliases({ agentName: 'a', agent_name: 'b' }, aliases).details).toEqual([
      { path: 'agent_name', message: 'differs from agentName; send only agentName' },
    ])
  })

  it('leaves anything that is not an object to the schema', () => {
    for (const value of [undefined, null, 3, 'text', [1]])
      expect(fromAliases(value, aliases)).toEqual({ value, details: [] })
  })

  it('never changes its argument, and a second pass changes nothing', () => {
    const key = fc.constantFrom('agentName', 'agent_name', 'template', 'config', 'other')
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue({ maxDepth: 2 })), body => {
        const before = structuredClone(body)
        const once = fromAliases(body, aliases)
        expect(body).toEqual(before)
        expect(fromAliases(once.value, aliases)).toEqual({ value: once.value, details: [] })
        expect(Object.keys(once.value as object)).not.toContain('agent_name')
      }),
      { numRuns: 200 },
    )
  })
})

describe('withAliases', () => {
  const schema = withAliases(z.strictObject({ agentName: z.string() }), aliases)

  it('reads both spellings', () => {
    expect(check(schema, { agent_name: 'a' })).toEqual({ ok: true, value: { agentName: 'a' } })
    expect(check(schema, { agentName: 'a' })).toEqual({ ok: true, value: { agentName: 'a' } })
  })

  it('refuses two that differ and names the alias', () => {
    expect(check(schema, { agentName: 'a', agent_name: 'b' })).toEqual({
      ok: false,
      details: [{ path: 'agent_name', message: 'differs from agentName; send only agentName' }],
    })
  })

  it('still names unknown keys and missing fields', () => {
    expect(check(schema, { nme: 'a' })).toEqual({
      ok: false,
      details: expect.arrayContaining([
        { path: 'agentName', message: 'Required' },
        { path: 'nme', message: 'unknown key' },
      ]),
    })
  })
})

describe('query', () => {
  it('counts the literal texts undefined and null as absent', () => {
    expect(dropAbsent({ a: 'undefined', b: 'null', c: 'x', d: undefined })).toEqual({ c: 'x' })
  })

  it('ignores unknown keys', () => {
    expect(check(query({ a: z.string().optional() }), { a: 'x', b: 'y' })).toEqual({ ok: true, value: { a: 'x' } })
  })

  it('reads flags as words or digits and nothing else', () => {
    expect(check(flag, 'true')).toEqual({ ok: true, value: true })
    expect(check(flag, '0')).toEqual({ ok: true, value: false })
    expect(check(flag, 'yes')).toEqual({ ok: false, details: [{ path: '', message: 'expected true or false' }] })
  })
})
