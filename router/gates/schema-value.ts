import type { OutputUnit, Validator } from '@cfworker/json-schema'
import type { Json } from '../../shared/sign/jcs.ts'
import type { RegexAnswer } from './regex-runner.ts'

/** Checks a parsed value. The reason names the place in the schema: the place in the value would show parts of it. */
export function checkValue(validator: Validator, value: unknown): RegexAnswer {
  try {
    const { valid, errors } = validator.validate(value)
    return valid ? { verdict: 'pass' } : { verdict: 'fail', reason: `schema: ${placeOf(errors)}` }
  } catch (error) {
    // A schema that refers to itself without going deeper, or a value nested too deep for the stack.
    if (error instanceof RangeError) return { verdict: 'error', reason: 'too_deep' }
    throw error
  }
}

/** The innermost complaint; that of a `false` schema gives the place in the value as its own, so its parent speaks. */
function placeOf(errors: readonly OutputUnit[]): string {
  const inner = errors.findLast(({ keyword }) => keyword !== 'false')
  return inner === undefined ? 'false' : `${inner.keyword} at ${inner.keywordLocation}`
}

/** Time is not bounded by the sizes of the schema and the value: backtracking, or every pair of items. */
const UNBOUNDED = ['pattern', 'patternProperties', 'format', 'uniqueItems']
/** A chain of references, each used twice, doubles the work with each link. */
const REFERENCES = ['$ref']

const ONE = new Set([
  ...['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'items'],
  ...['additionalProperties', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties'],
])
const LIST = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'])
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])

/**
 * The keywords of a schema that can take any time on the thread that serves requests. Operators may use references in
 * their own schemas; those that come with a request are foreign.
 */
export function costlyKeywords(schema: Json, from: 'config' | 'request'): string[] {
  const costly = new Set(from === 'config' ? UNBOUNDED : [...UNBOUNDED, ...REFERENCES])
  const found = new Set<string>()
  const walk = (value: Json | undefined): void => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, member] of Object.entries(value)) {
      if (costly.has(key)) found.add(key)
      if (LIST.has(key) && Array.isArray(member)) for (const item of member) walk(item)
      else if (ONE.has(key)) walk(member)
      else if (NAMED.has(key) && typeof member === 'object' && member !== null)
        for (const item of Object.values(member)) walk(item)
    }
  }
  walk(schema)
  return [...found].sort()
}
