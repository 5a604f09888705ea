import type { Json } from '../../shared/sign/jcs.ts'

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
