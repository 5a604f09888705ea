import { dereference, type Schema, Validator } from '@cfworker/json-schema'
import type { Json } from '../../shared/sign/jcs.ts'
import type { Path } from './locate.ts'
import { suggestion } from './suggestion.ts'

export type SchemaDraft = '2020-12' | '7'

/** A validator of a checked schema. It marks the schema it is given, so it gets a copy. */
export function schemaValidator(gate: { readonly schema: Json; readonly draft: SchemaDraft }): Validator {
  return new Validator(structuredClone(gate.schema) as Schema | boolean, gate.draft, true)
}

/** Reads a schema out of a config: 2020-12, or draft-07 when `$schema` says so; no reference leaves the document. */
export function readSchema(given: unknown): { schema: Json; draft: SchemaDraft } | { problems: SchemaProblem[] } {
  const problems: SchemaProblem[] = []
  const schema = toJson(given, [], problems)
  const draft = draftOf(schema, problems)
  problems.push(...checkSchema(schema, [], draft === '7'))
  if (problems.length === 0) problems.push(...checkReferences(structuredClone(schema)))
  return problems.length === 0 ? { schema, draft } : { problems }
}

function toJson(value: unknown, path: Path, problems: SchemaProblem[]): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) problems.push({ path, message: `${value} is not a JSON number` })
    return value
  }
  if (Array.isArray(value)) return value.map((item, i) => toJson(item, [...path, i], problems))
  if (typeof value === 'object' && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item, [...path, key], problems)]))
  }
  problems.push({ path, message: 'JSON has no value of this type: write it as a string' })
  return null
}

function draftOf(schema: Json, problems: SchemaProblem[]): SchemaDraft {
  const name = isMembers(schema) ? schema.$schema : undefined
  if (typeof name === 'string' && /draft-07\/schema#?$/.test(name)) return '7'
  if (name !== undefined && !(typeof name === 'string' && /draft\/2020-12\/schema#?$/.test(name)))
    problems.push({ path: ['$schema'], message: 'expected the address of JSON Schema 2020-12 or draft-07' })
  return '2020-12'
}

/** The validator's own resolution decides which references lead somewhere. */
function checkReferences(schema: Json): SchemaProblem[] {
  if (!isMembers(schema)) return []
  try {
    return [...deadReferences(schema, [], dereference(schema as Schema))]
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return [{ path: [], message: `the schema does not resolve: ${why}` }]
  }
}

function* deadReferences(value: Json | undefined, path: Path, lookup: Schema): Generator<SchemaProblem> {
  if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* deadReferences(item, [...path, i], lookup)
  if (!isMembers(value)) return
  const target = (value as Schema).__absolute_ref__
  if (target !== undefined && lookup[target] === undefined) {
    const message = `"${String(value.$ref)}" does not lead to a schema in this document`
    yield { path: [...path, '$ref'], message }
  }
  for (const [key, item] of Object.entries(value)) yield* deadReferences(item, [...path, key], lookup)
}

interface SchemaProblem {
  path: Path
  message: string
}

type Members = { readonly [key: string]: Json | undefined }

const isMembers = (value: Json | undefined): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']

const isNames = (value: Json | undefined) =>
  Array.isArray(value) && value.every(item => typeof item === 'string') && new Set(value).size === value.length

type Rule = readonly [expected: string, holds: (value: Json) => boolean]
const COUNT: Rule = ['a whole number of at least 0', value => Number.isInteger(value) && Number(value) >= 0]
const NUMBER: Rule = ['a number', value => typeof value === 'number']
const TEXT: Rule = ['a string', value => typeof value === 'string']

/** What the values of keywords without subschemas look like; other keywords are notes and stay unread. */
const VALUES = new Map<string, Rule>([
  ['required', ['an array of different names', isNames]],
  ['enum', ['an array', value => Array.isArray(value)]],
  ['multipleOf', ['a number above 0', value => typeof value === 'number' && value > 0]],
  ['maximum', NUMBER],
  ['minimum', NUMBER],
  ['exclusiveMaximum', NUMBER],
  ['exclusiveMinimum', NUMBER],
  ['maxLength', COUNT],
  ['minLength', COUNT],
  ['maxItems', COUNT],
  ['minItems', COUNT],
  ['maxProperties', COUNT],
  ['minProperties', COUNT],
  ['maxContains', COUNT],
  ['minContains', COUNT],
  ['uniqueItems', ['true or false', value => typeof value === 'boolean']],
  ['pattern', ['a regular expression', value => typeof value === 'string' && compiles(value)]],
  ['format', TEXT],
  ['$ref', TEXT],
  ['$id', TEXT],
  ['$anchor', TEXT],
  [
    'dependentRequired',
    ['a table of arrays of names', value => isMembers(value) && Object.values(value).every(isNames)],
  ],
])

const SUBSCHEMA = new Set([
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'additionalProperties',
  'additionalItems',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema',
])
const SUBSCHEMAS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
/** The validator passes over these, so a schema that relies on them would let everything through. */
const UNSUPPORTED = new Set(['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor'])

/** Everything that makes a schema no schema: the library that runs it does not look. Draft-07 has lists in `items`. */
function* checkSchema(schema: Json | undefined, path: Path, tuples: boolean): Generator<SchemaProblem> {
  if (typeof schema === 'boolean') return
  if (!isMembers(schema)) {
    yield { path, message: 'expected a schema: a table, true or false' }
    return
  }
  for (const [key, value] of Object.entries(schema)) {
    if (value !== undefined) yield* checkKeyword(key, value, [...path, key], tuples)
  }
}

function* checkKeyword(key: string, value: Json, path: Path, tuples: boolean): Generator<SchemaProblem> {
  const isTuple = key === 'items' && Array.isArray(value)
  if (key === 'type') yield* checkType(value, path)
  else if (UNSUPPORTED.has(key)) yield { path, message: `"${key}" is not supported: use "$ref"` }
  else if (isTuple && !tuples) yield { path, message: 'expected one schema: lists of schemas are "prefixItems"' }
  else if (SUBSCHEMAS.has(key) || isTuple) yield* checkList(value, path, tuples)
  else if (SUBSCHEMA.has(key) || key === 'items') yield* checkSchema(value, path, tuples)
  else if (NAMED.has(key)) yield* checkNamed(key, value, path, tuples)
  else if (key === 'dependencies') yield* checkDependencies(value, path, tuples)
  else {
    const rule = VALUES.get(key)
    if (rule !== undefined && !rule[1](value)) yield { path, message: `expected ${rule[0]}` }
  }
}

function* checkType(value: Json, path: Path): Generator<SchemaProblem> {
  const types = Array.isArray(value) ? value : [value]
  if (types.length === 0) yield { path, message: 'expected at least one type' }
  for (const [i, type] of types.entries()) {
    if (typeof type === 'string' && TYPES.includes(type)) continue
    const meant = typeof type === 'string' ? suggestion(type, TYPES) : ''
    yield { path: Array.isArray(value) ? [...path, i] : path, message: `expected one of ${TYPES.join(', ')}${meant}` }
  }
}

function* checkList(value: Json, path: Path, tuples: boolean): Generator<SchemaProblem> {
  if (!Array.isArray(value) || value.length === 0) yield { path, message: 'expected an array of schemas' }
  else for (const [i, item] of value.entries()) yield* checkSchema(item, [...path, i], tuples)
}

function* checkNamed(key: string, value: Json, path: Path, tuples: boolean): Generator<SchemaProblem> {
  if (!isMembers(value)) {
    yield { path, message: 'expected a table of schemas' }
    return
  }
  for (const [name, item] of Object.entries(value)) {
    const at = [...path, name]
    if (key === 'patternProperties' && !compiles(name))
      yield { path: at, message: 'this name is not a regular expression' }
    yield* checkSchema(item, at, tuples)
  }
}

function* checkDependencies(value: Json, path: Path, tuples: boolean): Generator<SchemaProblem> {
  if (!isMembers(value)) {
    yield { path, message: 'expected a table of schemas or arrays of names' }
    return
  }
  for (const [name, item] of Object.entries(value)) {
    if (!isNames(item)) yield* checkSchema(item, [...path, name], tuples)
  }
}

function compiles(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}
