import { format, type Schema, Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schemaCheck, schemaProblem } from './schema-check.ts'

const fits = (schema: Record<string, unknown>, value: unknown) => schemaCheck(schema)(value) === undefined
const said = (schema: Record<string, unknown>, value: unknown) => schemaCheck(schema)(value)?.message

/** A value with a member `then` would be taken for a promise by the linter. */
const branches = (...all: [unknown, unknown, unknown]) =>
  Object.fromEntries(['if', 'then', 'else'].map((name, n) => [name, all[n]]))

/** In time of this process on a core, which a busy machine does not make longer. */
function within<T>(ms: number, work: () => T): T {
  const before = process.cpuUsage()
  const made = work()
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(ms)
  return made
}

const TOO_MUCH = 'holding it against the schema takes too long: shorten it, or make the schema simpler'

describe('what a stranger writes takes no more than its time', () => {
  const text = `${'a'.repeat(60_000)}!`

  it('a pattern that goes back and forth', () => {
    expect(within(1000, () => said({ pattern: '^(a+)+$' }, text))).toBe('String does not match pattern.')
    expect(within(1000, () => fits({ patternProperties: { '^(a+)+$': false } }, { [text]: 1 }))).toBe(true)
    expect(within(1000, () => fits({ propertyNames: { pattern: '^(a|a)*$' } }, { [text]: 1 }))).toBe(false)
  })

  it('items that have to differ', () => {
    const items = Array.from({ length: 50_000 }, (_, n) => ({ n, name: `item ${n}` }))
    expect(within(1000, () => fits({ uniqueItems: true }, items))).toBe(true)
    const again = [...items, { name: 'item 7', n: 7 }]
    expect(within(1000, () => said({ uniqueItems: true }, again))).toBe('Duplicate items at indexes 7 and 50000.')
  })

  it('more items that have to differ than a check may compare', () => {
    const items = Array.from({ length: 200_000 }, (_, n) => ({ n }))
    expect(within(1000, () => said({ uniqueItems: true }, items))).toBe(TOO_MUCH)
  })

  it('references that double with each link', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [
        `d${n}`,
        { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
      ]),
    )
    const schema = { $ref: '#/$defs/d0', $defs: { ...$defs, d60: { type: 'object' } } }
    expect(within(2000, () => said(schema, {}))).toBe(TOO_MUCH)
  })

  it('a large schema on a large value', () => {
    const value = Array.from({ length: 100_000 }, (_, n) => `v${n}`)
    expect(within(2000, () => fits({ items: { enum: value } }, value))).toBe(true)
    const anyOf = value.slice(0, 19_000).map(one => ({ const: `${one}!` }))
    expect(within(2000, () => said({ items: { anyOf } }, value))).toBe(TOO_MUCH)
  })

  it('a schema that comes back to itself, and a value without a bottom', () => {
    expect(said({ $ref: '#' }, {})).toBe('it or its schema is nested too deep')
    let value: unknown = 1
    for (let n = 0; n < 100_000; n++) value = [value]
    expect(said({ items: { $ref: '#' } }, value)).toBe('it or its schema is nested too deep')
    expect(said({ uniqueItems: true }, [value])).toBe('it or its schema is nested too deep')
  })

  it('a format', () => {
    const long = (part: string) => `${part.repeat(20_000)}\n`
    for (const name of [...Object.keys(format), 'nothing']) {
      for (const part of [
        'a',
        'a.',
        '1',
        '1:',
        ':',
        '/',
        '//a',
        '%aa',
        '{a}',
        '{a,',
        'a@',
        '"',
        '[',
        '\\Z',
        '~0',
        '#/a',
        'P1D',
        '-',
        ' ',
      ])
        for (const before of ['', 'http://', 'a:', '//', 'a@', '/', '{', '"', 'http://a@['])
          within(1000, () => schemaCheck({ format: name })(before + long(part)))
    }
  })
})

it.each([
  [{ anyOf: Array.from({ length: 20_000 }, () => true) }, undefined],
  [{ anyOf: Array.from({ length: 20_000 }, () => ({})) }, 'it holds more than 20000 schemas'],
  [{ pattern: '(a)\\1' }, '#: the pattern (a)\\1 cannot be used: \\1 is not supported at character 6'],
  [
    { properties: { a: { items: { pattern: '(' } } } },
    '#/properties/a/items: the pattern ( cannot be used: it is not a regular expression',
  ],
  [
    { patternProperties: { '(?<=a)': true } },
    '#: the pattern (?<=a) cannot be used: looks behind and flags in a group are not supported at character 2',
  ],
  [{ pattern: 7 }, '#/pattern: expected a text'],
  [{ properties: [] }, '#/properties: expected an object of schemas'],
  [{ anyOf: {} }, '#/anyOf: expected a list of schemas'],
  [{ not: null }, '#/not: expected a schema, which is an object, true or false'],
  [{ $ref: '#/$defs/none' }, '#: $ref does not lead to a schema in this document'],
  [{ $id: 'http://' }, expect.stringContaining('it does not resolve')],
  [
    { anyOf: Array.from({ length: 100 }, (_, n) => ({ pattern: `a{2000}${n}` })) },
    expect.stringContaining('the patterns of the schema are too large together'),
  ],
  [
    { properties: { a: { type: 'string', required: true } }, examples: [{ pattern: '*' }], default: { pattern: '*' } },
    undefined,
  ],
])('%.80j: whether it can be used', (schema, problem) => {
  expect(schemaProblem(schema)).toEqual(problem)
})

it.each([
  [{ type: 'integer' }, 1, 1.5],
  [{ type: ['string', 'null'] }, null, 1],
  [{ const: { a: [1, 2] } }, { a: [1, 2] }, { a: [2, 1] }],
  [{ enum: [0, 'a', null] }, -0, '0'],
  [{ multipleOf: 0.01 }, 4.35, 4.355],
  [{ minimum: 1, exclusiveMinimum: true }, 2, 1],
  [{ minLength: 2, maxLength: 2 }, '😀😀', '😀'],
  [{ format: 'date-time' }, '2026-11-23T11:57:00Z', 'today'],
  [{ format: 'email' }, 'ada@example.com', 'ada'],
  [{ dependentRequired: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
  [{ dependentSchemas: { a: { required: ['b'] } } }, { b: 1 }, { a: 1 }],
  [
    { properties: { a: {} }, patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false },
    { a: 1, 'x-b': '' },
    { b: 1 },
  ],
  [{ allOf: [{ properties: { a: {} } }], unevaluatedProperties: false }, { a: 1 }, { a: 1, b: 1 }],
  [branches({ required: ['a'] }, { required: ['b'] }, { required: ['c'] }), { a: 1, b: 1 }, { a: 1, c: 1 }],
  [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 1], ['a', 'b']],
  [{ items: [{ type: 'string' }], additionalItems: false }, ['a'], ['a', 'b']],
  [{ prefixItems: [true], contains: { const: 1 }, unevaluatedItems: false }, ['a', 1], ['a', 1, 2]],
  [{ contains: { const: 1 }, minContains: 2, maxContains: 2 }, [1, 1, 2], [1, 1, 1]],
  [
    { uniqueItems: true },
    [1, '1', [1], { a: 1 }],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
  ],
  [
    { $defs: { node: { $anchor: 'n', properties: { next: { $ref: '#n' }, v: { type: 'number' } } } }, $ref: '#n' },
    { next: { v: 1 } },
    { next: { next: { v: '' } } },
  ],
  [{ oneOf: [{ type: 'number' }, { minimum: 2 }] }, 1, 3],
  [{ not: { type: 'string' } }, 1, ''],
])('%.80j takes %j and not %j', (schema, good, bad) => {
  expect([fits(schema, good), fits(schema, bad)]).toEqual([true, false])
})

it('says where and why', () => {
  const schema = { type: 'object', properties: { 'a/b': { type: 'array', items: { minimum: 3 } }, no: false } }
  expect(schemaCheck(schema)({ 'a/b': [3, 1] })).toEqual({ at: '#/a~1b/1', message: '1 is less than 3.' })
  expect(schemaCheck(schema)({ no: 1 })).toEqual({ at: '#', message: 'Property "no" does not match schema.' })
  expect(schemaCheck({ additionalProperties: false })({ b: 1 })?.at).toBe('#')
})

it('agrees with the library that it stands for', () => {
  const value = fc.letrec<{ value: unknown }>(tie => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(0, 1, 2.5, -0, '', 'a', 'ab', 'b1', null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'ab'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value
  const schema = fc.letrec<{ schema: Schema | boolean; part: Schema; list: Schema[] }>(tie => ({
    list: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) as fc.Arbitrary<Schema[]>,
    part: fc.oneof(
      { depthSize: 'small' },
      fc.record({ type: fc.constantFrom('string', 'number', 'integer', 'object', 'array', 'null', 'boolean') }),
      fc.record({ enum: fc.array(value, { minLength: 1, maxLength: 3 }) }),
      fc.record({ const: value }),
      fc.record({ pattern: fc.constantFrom('^a', 'b$', '\\d', '^(a|b)+$') }),
      fc.record(
        {
          minimum: fc.constantFrom(0, 1),
          exclusiveMaximum: fc.constantFrom(1, 2),
          multipleOf: fc.constantFrom(0.5, 2),
        },
        { requiredKeys: [] },
      ),
      fc.record({ minLength: fc.nat(2), maxLength: fc.nat(2) }, { requiredKeys: [] }),
      fc.record(
        {
          required: fc.uniqueArray(fc.constantFrom('a', 'b'), { maxLength: 2 }),
          minProperties: fc.nat(2),
          maxProperties: fc.nat(2),
        },
        { requiredKeys: [] },
      ),
      fc.record({ minItems: fc.nat(2), maxItems: fc.nat(2), uniqueItems: fc.boolean() }, { requiredKeys: [] }),
      fc.record(
        { allOf: tie('list'), anyOf: tie('list'), oneOf: tie('list'), not: tie('schema') },
        { requiredKeys: [] },
      ),
      fc.tuple(tie('schema'), tie('schema'), tie('schema')).map(all => branches(...all)),
      fc.record(
        {
          properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema'), { maxKeys: 2, noNullPrototype: true }),
          patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), tie('schema'), {
            maxKeys: 2,
            noNullPrototype: true,
          }),
          additionalProperties: tie('schema'),
          propertyNames: tie('schema'),
          dependentSchemas: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema'), {
            maxKeys: 1,
            noNullPrototype: true,
          }),
        },
        { requiredKeys: [] },
      ),
      fc.record({ prefixItems: tie('list'), items: tie('schema'), contains: tie('schema') }, { requiredKeys: [] }),
      fc.constant({ $ref: '#/$defs/one' }),
    ) as fc.Arbitrary<Schema>,
    schema: fc.oneof(
      fc.boolean(),
      fc
        .array(tie('part') as fc.Arbitrary<Schema>, { maxLength: 3 })
        .map(parts => Object.assign({}, ...parts) as Schema),
    ),
  }))
  fc.assert(
    fc.property(schema.part as fc.Arbitrary<Schema>, schema.part as fc.Arbitrary<Schema>, value, (top, one, value) => {
      const whole = { ...top, $defs: { one } }
      // A reference to itself alone has no end in either.
      fc.pre(!JSON.stringify(one).includes('$ref'))
      const { valid } = new Validator(structuredClone(whole) as Schema, '2020-12', false).validate(value)
      expect(fits(whole, value)).toBe(valid)
    }),
    { numRuns: 2000 },
  )
})
