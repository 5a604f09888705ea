import type { OutputUnit, Validator } from '@cfworker/json-schema'
import type { Json } from '../../shared/sign/jcs.ts'
import type { RegexAnswer } from './regex-runner.ts'

/** Checks a parsed value. The reason names the place in the schema: the place in the value would show parts of it. */
export function checkValue(validator: Validator, value: unknown): RegexAnswer {
  try {
    const { valid, errors } = validator.validate(value)
    return valid ? { verdict: 'pass' } : { verdict: 'fail', reason: `schema: ${failedAt(errors)}` }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    // Nested too deep for the stack: if it is the value, no gate can be passed by that; else the schema refers to itself without going deeper.
    const reason = 'too_deep'
    return isDeep(value) ? { verdict: 'fail', reason } : { verdict: 'error', reason }
  }
}

const DEEP = 100

/** Nested in more levels than any answer needs. The stack is not used, as the value may be too deep for it. */
function isDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEP) return true
    level = level.flatMap(one => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

/** The innermost complaint; that of a `false` schema gives the place in the value as its own, so its parent speaks. */
function failedAt(errors: readonly OutputUnit[]): string {
  const inner = errors.findLast(({ keyword }) => keyword !== 'false')
  return inner === undefined ? 'false' : `${inner.keyword} at ${inner.keywordLocation}`
}

/** The values in a value, itself among them; what has more than fit into `most` is as good as endless. */
export function sizeOf(value: unknown, most = Number.POSITIVE_INFINITY): number {
  const open = [value]
  let size = 0
  for (let one = open.pop(); size <= most; one = open.pop()) {
    size += 1
    if (typeof one === 'object' && one !== null) for (const member of Object.values(one)) open.push(member)
    if (open.length === 0) return size
  }
  return Number.POSITIVE_INFINITY
}

/** Time is not bounded by the sizes of the schema and the value: backtracking, or every pair of items. */
const UNBOUNDED = ['pattern', 'patternProperties', 'format', 'uniqueItems']
/** A chain of references, each used twice, doubles the work with each link; one that leads back to itself, with each level of the value. */
const REFERENCES = ['$ref']

const ONE = new Set([
  ...['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'items'],
  ...['additionalProperties', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties'],
])
const LIST = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'])
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])

/**
 * The keywords of a schema that can take any time on the thread that serves requests. Operators may use references in
 * their own schemas that lead to no circle; those that come with a request are foreign.
 */
export function costlyKeywords(schema: Json, from: 'config' | 'request'): string[] {
  const isBounded = from === 'config' && !isCircular(schema)
  const costly = new Set(isBounded ? UNBOUNDED : [...UNBOUNDED, ...REFERENCES])
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

/** Whether a reference leads to a schema that holds it again. One that is no plain pointer into the document is taken to. */
function isCircular(schema: Json): boolean {
  const done = new Set<string>()
  const leadsBack = (ref: string, above: readonly string[]): boolean => {
    if (above.includes(ref)) return true
    if (done.has(ref)) return false
    const target = pointedTo(schema, ref)
    if (target === undefined) return true
    if ([...textsOf('$ref', target)].some(next => leadsBack(next, [...above, ref]))) return true
    done.add(ref)
    return false
  }
  const refs = new Set(textsOf('$ref', schema))
  if (refs.size === 0) return false
  const hasBases = Array.isArray(schema) || [...textsOf('$id', schema)].length > 0
  return hasBases || [...refs].some(ref => leadsBack(ref, []))
}

/** The texts under a name, at any depth. */
function* textsOf(name: string, value: Json | undefined): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value)) {
    if (key === name && typeof member === 'string') yield member
    yield* textsOf(name, member)
  }
}

function pointedTo(schema: Json, ref: string): Json | undefined {
  if (!/^#(?:\/[^%]*)?$/.test(ref)) return undefined
  let at: Json | undefined = schema
  for (const step of ref.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return undefined
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = Object.hasOwn(at, name) ? (at as { [name: string]: Json })[name] : undefined
  }
  return at
}
