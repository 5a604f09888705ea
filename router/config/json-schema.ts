import { dereference, type Schema, Validator } from '@cfworker/json-schema'
import type { Json } from '../../shared/sign/jcs.ts'
import { checkSchema, isMembers, type SchemaProblem } from './json-schema-check.ts'
import type { Path } from './locate.ts'

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
