import type { AnySchema, Schema } from './evaluation.ts'

type Rule = readonly [expected: string, holds: (value: unknown) => boolean]
const NUMBER: Rule = ['a number', value => typeof value === 'number']
const BOUND: Rule = ['a number', value => typeof value === 'number' || typeof value === 'boolean']
const TEXT: Rule = ['a text', value => typeof value === 'string']
const isNames = (value: unknown) => Array.isArray(value) && value.every(one => typeof one === 'string')

/** What keywords without schemas in them have to be. */
const VALUES: Readonly<Record<string, Rule>> = {
  type: ['a type or a list of types', value => typeof value === 'string' || isNames(value)],
  enum: ['a list', value => Array.isArray(value)],
  // In drafts of old `required` was said of a member, and `exclusiveMinimum` of `minimum`.
  required: ['a list of names', value => typeof value === 'boolean' || isNames(value)],
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: BOUND,
  exclusiveMaximum: BOUND,
  multipleOf: NUMBER,
  minLength: NUMBER,
  maxLength: NUMBER,
  minItems: NUMBER,
  maxItems: NUMBER,
  minContains: NUMBER,
  maxContains: NUMBER,
  minProperties: NUMBER,
  maxProperties: NUMBER,
  pattern: TEXT,
  format: TEXT,
}
const ONE = new Set([
  ...['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'additionalProperties', 'additionalItems'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'items'],
])
const LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'],
  'dependentRequired',
])

export class SchemaProblem extends Error {}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Every schema in a schema, once each; throws at the first that cannot be used. */
export function eachSchema(root: unknown, look: (schema: Schema, at: string) => void): void {
  const open: [unknown, string][] = [[root, '#']]
  for (let next = open.pop(); next; next = open.pop()) {
    const [schema, at] = next
    if (typeof schema === 'boolean') continue
    if (!isObject(schema)) throw new SchemaProblem(`${at}: expected a schema, which is an object, true or false`)
    look(schema, at)
    for (const [keyword, value] of Object.entries(schema)) {
      for (const [inner, place] of within(keyword, value, `${at}/${keyword}`)) open.push([inner, place])
    }
  }
}

function within(keyword: string, value: unknown, at: string): [unknown, string][] {
  const rule = Object.hasOwn(VALUES, keyword) ? VALUES[keyword] : undefined
  if (rule && !rule[1](value)) throw new SchemaProblem(`${at}: expected ${rule[0]}`)
  if (LISTS.has(keyword) || (keyword === 'items' && Array.isArray(value))) {
    if (!Array.isArray(value)) throw new SchemaProblem(`${at}: expected a list of schemas`)
    return value.map((one: AnySchema, n) => [one, `${at}/${n}`])
  }
  if (ONE.has(keyword)) return [[value, at]]
  if (!NAMED.has(keyword)) return []
  if (!isObject(value)) throw new SchemaProblem(`${at}: expected an object of schemas`)
  const all = Object.entries(value)
  if (keyword === 'dependentRequired') {
    for (const [name, names] of all) {
      if (!isNames(names)) throw new SchemaProblem(`${at}/${name}: expected a list of names`)
    }
    return []
  }
  return all
    .filter(([, one]) => keyword !== 'dependencies' || !isNames(one))
    .map(([name, one]) => [one, `${at}/${name}`])
}
