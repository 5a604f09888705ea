import { afterAll, describe, expect, it } from 'vitest'
import type { Json } from '../../shared/sign/jcs.ts'
import { regexWorkers } from '../host/regex-worker.ts'
import { buildGates } from './build-gates.ts'
import type { GateConfig } from './gate-kinds.ts'
import { costlyKeywords } from './schema-value.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { type AnswerParts, inputOf } from './testing/subject.ts'

const workers = regexWorkers({ size: 1 })
afterAll(() => workers.close())

const config = (schema: Json, more: Partial<GateConfig<'schema'>> = {}): GateConfig<'schema'> => ({
  ...base,
  kind: 'schema',
  schema,
  draft: '2020-12',
  fences: true,
  onToolCall: 'pass',
  ...more,
})

async function judge(schema: Json, parts: AnswerParts, more: Partial<GateConfig<'schema'>> = {}): Promise<string> {
  const gate = builtGate(config(schema, more), { regexRunner: workers })
  const { verdict, reason } = await gate.run(inputOf(parts), never)
  return reason === undefined ? verdict : `${verdict} ${reason}`
}

const invoice = {
  type: 'object',
  required: ['total'],
  properties: { total: { type: 'number' }, lines: { type: 'array', items: { $ref: '#/$defs/line' } } },
  $defs: { line: { type: 'object', required: ['sku'], additionalProperties: false, properties: { sku: true } } },
}

describe('schema', () => {
  it.each<[string, Json, AnswerParts, Partial<GateConfig<'schema'>>, string]>([
    ['a match', invoice, { text: '{"total":1.5}' }, {}, 'pass'],
    ['a fenced match', invoice, { text: '```json\n{"total":1}\n```' }, {}, 'pass'],
    ['a wrong type', invoice, { text: '{"total":"1"}' }, {}, 'fail schema: type at #/properties/total/type'],
    ['a missing member', invoice, { text: '{}' }, {}, 'fail schema: required at #/required'],
    ['another kind of value', invoice, { text: '[]' }, {}, 'fail schema: type at #/type'],
    [
      'a bad item behind a reference',
      invoice,
      { text: '{"total":1,"lines":[{}]}' },
      {},
      expect.stringMatching(/^fail schema: required at /) as never,
    ],
    ['prose', invoice, { text: 'the total is 5' }, {}, 'fail not_json'],
    ['an answer that was cut', invoice, { text: '{"total":1}', finish: 'length' }, {}, 'fail truncated'],
    ['a tool call', invoice, { calls: [['pay', '{}']] }, {}, 'pass'],
    ['an unwanted tool call', invoice, { calls: [['pay', '{}']] }, { onToolCall: 'fail' }, 'fail tool_call'],
    ['the last of repeated keys', invoice, { text: '{"total":"x","total":1}' }, {}, 'pass'],
    [
      'draft-07 tuples',
      { items: [{ type: 'string' }] },
      { text: '[1]' },
      { draft: '7' },
      'fail schema: type at #/items/0/type',
    ],
    [
      '2020-12 tuples',
      { prefixItems: [{ type: 'string' }], items: false },
      { text: '["a",2]' },
      {},
      'fail schema: items at #/items',
    ],
    [
      'unevaluated members',
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { text: '{"a":1,"b":2}' },
      {},
      'fail schema: unevaluatedProperties at #/unevaluatedProperties',
    ],
    ['a pattern', { pattern: '^[A-Z]{3}$' }, { text: '"EUR"' }, {}, 'pass'],
    ['a broken pattern', { pattern: '^[A-Z]{3}$' }, { text: '"eur"' }, {}, 'fail schema: pattern at #/pattern'],
    ['a date', { format: 'date' }, { text: '"2024-02-30"' }, {}, 'fail schema: format at #/format'],
    [
      'equal items',
      { uniqueItems: true },
      { text: '[{"a":1},{"a":1}]' },
      {},
      'fail schema: uniqueItems at #/uniqueItems',
    ],
    ['a schema that goes in circles', { $ref: '#' }, { text: '1' }, {}, 'abstain too_deep'],
  ])('judges %s', async (_, schema, parts, more, expected) => {
    expect(await judge(schema, parts, more)).toEqual(expected)
  })

  const tree: Json = {
    oneOf: ['and', 'or', 'not'].map(op => ({ properties: { of: { $ref: '#' }, op: { const: op } }, required: ['op'] })),
  }

  it('is stopped in its time where each level of an answer doubles the work', async () => {
    const text = `${'{"op":"not","of":'.repeat(40)}{"op":"or"}${'}'.repeat(40)}`
    const gate = builtGate(config(tree), { regexRunner: workers })
    expect(gate.inline).toBeUndefined()
    await expect(gate.run(inputOf({ text }), AbortSignal.timeout(300))).rejects.toThrow('aborted due to timeout')
  })

  it('fails an answer that is nested deeper than it can be checked', async () => {
    const text = `${'{"next":'.repeat(20_000)}3${'}'.repeat(20_000)}`
    expect(await judge({ type: 'object', properties: { next: { $ref: '#' } } }, { text })).toBe('fail too_deep')
  })

  it('never shows a piece of the answer in its reason', async () => {
    const secret = 'k3y-of-the-model'
    const closed = { type: 'object', additionalProperties: false, properties: { n: { enum: ['a'] } } }
    for (const text of [`{"${secret}":1}`, `{"n":"${secret}"}`])
      expect(await judge(closed, { text })).not.toContain(secret)
  })

  it('takes a schema that is frozen', async () => {
    const frozen = Object.freeze({ type: 'object', properties: Object.freeze({ a: Object.freeze({ type: 'null' }) }) })
    expect(await judge(frozen, { text: '{"a":null}' })).toBe('pass')
  })

  it('is refused without a runner only when its schema can take any time', () => {
    expect(builtGate(config(invoice)).inline).toBeDefined()
    const { gates, problems } = buildGates([config({ properties: { a: { pattern: 'x' } } })], {})
    expect(gates.size).toBe(0)
    expect(problems).toMatchObject([{ code: 'host', message: expect.stringContaining('its schema uses pattern, ') }])
  })
})

describe('costlyKeywords', () => {
  it('tells keywords from names of members and from values', () => {
    const plain = {
      properties: { pattern: { type: 'string' }, format: true, $ref: true },
      enum: [{ pattern: 'x' }],
      const: { format: 'date' },
    }
    expect(costlyKeywords(plain, 'request')).toEqual([])
  })

  it('finds them at any place of a schema', () => {
    const places: Json[] = [
      { $defs: { a: { pattern: 'x' } } },
      { items: [{ pattern: 'x' }] },
      { dependencies: { a: { pattern: 'x' } } },
      { if: { not: { contains: { pattern: 'x' } } } },
      { anyOf: [true, { additionalProperties: { propertyNames: { pattern: 'x' } } }] },
    ]
    for (const schema of places) expect(costlyKeywords(schema, 'config')).toEqual(['pattern'])
  })

  it('trusts references of the operator, not those of a request', () => {
    expect(costlyKeywords(invoice, 'config')).toEqual([])
    expect(costlyKeywords(invoice, 'request')).toEqual(['$ref'])
  })

  it.each<[string, Json]>([
    ['to the whole', { properties: { next: { $ref: '#' } } }],
    ['to itself', { $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/a' } } } }],
    [
      'by another',
      { $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/b~1c' } }, 'b/c': { not: { $ref: '#/$defs/a' } } } },
    ],
    ['by an anchor', { $ref: '#a', $defs: { a: { $anchor: 'a', items: { $ref: '#a' } } } }],
    ['to another base', { $id: 'https://x.test/a', $defs: { b: { $id: 'b', items: { $ref: '#' } } }, $ref: 'b' }],
  ])('finds a reference that leads back %s, whose work doubles with each level of a value', (_, schema) => {
    expect(costlyKeywords(schema, 'config')).toEqual(['$ref'])
  })
})
