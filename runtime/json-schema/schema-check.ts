import { dereference, type Schema as Marked } from '@cfworker/json-schema'
import {
  type AnySchema,
  type Evaluation,
  type Fault,
  type Instance,
  pointerOf,
  type Seen,
  TooMuchWork,
  type Where,
} from './evaluation.ts'
import { checkAny, checkArray, checkNumber, checkObject, checkString } from './keywords.ts'
import { type Matcher, patternMatcher } from './pattern-matcher.ts'
import { eachSchema, SchemaProblem } from './usable-schema.ts'

/** Undefined if a value fits; else the place in it, and what is wrong there. */
export type SchemaCheck = (value: unknown) => { at: string; message: string } | undefined

/** About a quarter of a second of work, enough for an ordinary answer of a megabyte. It is counted and not timed, so that a run that is done again comes to the same end. */
const MOST_STEPS = 5_000_000
const MOST_STATES = 50_000
const MOST_SCHEMAS = 20_000

/**
 * Holds values against a foreign schema (JSON Schema 2020-12), on the thread that serves every request: no pattern goes
 * back, equal items are found by their text, and the work of one check has an end. Throws a SchemaProblem that says why a schema cannot be used.
 */
export function schemaCheck(given: Readonly<Record<string, unknown>>): SchemaCheck {
  const { schema, lookup } = resolved(given)
  const matchers = new Matchers()
  const lists = new Map<object, Set<string>>()
  eachSchema(schema, (one, at) => {
    const ref = one.__absolute_ref__ ?? one.__absolute_recursive_ref__
    if (ref !== undefined && lookup[ref] === undefined) {
      throw new SchemaProblem(`${at}: $ref does not lead to a schema in this document`)
    }
    for (const pattern of patternsOf(one)) add(matchers, pattern, at)
  })
  return value => {
    try {
      const fault = evaluation(lookup, matchers, lists).check(schema, value, undefined)
      if (!fault) return undefined
      return fault.bare
        ? { at: '#', message: 'it does not fit the schema' }
        : { at: pointerOf(fault.at), message: fault.error() }
    } catch (error) {
      if (error instanceof TooMuchWork) return { at: '#', message: TOO_MUCH }
      if (error instanceof SchemaProblem) return { at: '#', message: error.message }
      // A schema that refers to itself without going deeper, or a value nested too deep for the stack.
      if (error instanceof RangeError) return { at: '#', message: TOO_DEEP }
      throw error
    }
  }
}

/** As `schemaCheck`; a schema that cannot be used takes no value. */
export function schemaCheckOrRefusal(given: Readonly<Record<string, unknown>>): SchemaCheck {
  try {
    return schemaCheck(given)
  } catch (error) {
    if (!(error instanceof SchemaProblem)) throw error
    return () => ({ at: '#', message: `the schema cannot be used: ${error.message}` })
  }
}

/** Why a schema cannot be used; undefined if it can. */
export function schemaProblem(given: unknown): string | undefined {
  try {
    schemaCheck(given as Readonly<Record<string, unknown>>)
    return undefined
  } catch (error) {
    if (error instanceof SchemaProblem) return error.message
    throw error
  }
}

class Matchers extends Map<string, Matcher> {
  states = 0
}

const TOO_MUCH = 'holding it against the schema takes too long: shorten it, or make the schema simpler'
const TOO_DEEP = 'it or its schema is nested too deep'

function resolved(given: unknown): { schema: AnySchema; lookup: Readonly<Record<string, AnySchema>> } {
  try {
    // The schema is marked.
    const schema = structuredClone(given) as Marked
    let left = MOST_SCHEMAS
    eachSchema(schema, () => {
      if (--left < 0) throw new SchemaProblem(`it holds more than ${MOST_SCHEMAS} schemas`)
    })
    return { schema, lookup: dereference(schema) as Record<string, AnySchema> }
  } catch (error) {
    if (error instanceof SchemaProblem) throw error
    throw new SchemaProblem(error instanceof RangeError ? TOO_DEEP : `it does not resolve: ${String(error)}`)
  }
}

function patternsOf({ pattern, patternProperties }: Readonly<Record<string, unknown>>): string[] {
  const names =
    typeof patternProperties === 'object' && patternProperties !== null ? Object.keys(patternProperties) : []
  return typeof pattern === 'string' ? [pattern, ...names] : names
}

/** A pattern of few characters can have many states. */
function add(known: Matchers, pattern: string, at: string): void {
  if (known.has(pattern)) return
  const made = patternMatcher(pattern)
  if (typeof made === 'string') throw new SchemaProblem(`${at}: the pattern ${shown(pattern)} cannot be used: ${made}`)
  known.set(pattern, made)
  known.states += made.states
  if (known.states > MOST_STATES) throw new SchemaProblem(`${at}: the patterns of the schema are too large together`)
}

const shown = (pattern: string) => (pattern.length > 80 ? `${pattern.slice(0, 80)}…` : pattern)

function evaluation(
  lookup: Readonly<Record<string, AnySchema>>,
  matchers: Matchers,
  lists: Map<object, Set<string>>,
): Evaluation {
  let left = MOST_STEPS
  const spend = (steps: number): void => {
    left -= steps
    if (left < 0) throw new TooMuchWork()
  }
  const quoted = new Map<string, string>()
  const nameOf = (name: string): string => {
    const known = quoted.get(name)
    if (known !== undefined) return known
    const text = JSON.stringify(name)
    // Names repeat from item to item; those of one item alone are not kept.
    if (quoted.size < 1000) quoted.set(name, text)
    return text
  }
  const keyOfObject = (value: object): string => {
    if (Array.isArray(value)) return `[${value.map(keyOf).join()}]`
    const names = Object.keys(value)
    if (names.length > 1) names.sort()
    let key = '{'
    for (const name of names) key += `${nameOf(name)}:${keyOf((value as Record<string, unknown>)[name])},`
    return `${key}}`
  }
  const keyOf = (value: unknown): string => {
    if (typeof value === 'number') return value === 0 ? '0' : String(value)
    const isObject = typeof value === 'object' && value !== null
    const key = isObject ? keyOfObject(value) : JSON.stringify(value)
    // The key of an object or a list is made of those of its members, which takes as long as many steps.
    spend((isObject ? 85 : 1) + key.length / 10)
    return key
  }
  const run: Evaluation = {
    spend,
    keyOf,
    matches(pattern, text) {
      // A reference may lead to a place where no schema was expected.
      add(matchers, pattern, '#')
      return matchers.get(pattern)!.matches(text, spend)
    },
    isIn(list, value, of) {
      let keys = lists.get(of)
      if (!keys) {
        keys = new Set(list.map(keyOf))
        lists.set(of, keys)
      }
      return keys.has(keyOf(value))
    },
    check(schema, value, at, seen = new Set()) {
      spend(40)
      if (typeof schema === 'boolean') return schema ? undefined : { at, error: () => '', bare: true }
      return checkOne(run, lookup, schema, value, at, seen)
    },
  }
  return run
}

function checkOne(
  run: Evaluation,
  lookup: Readonly<Record<string, AnySchema>>,
  schema: Exclude<AnySchema, boolean>,
  value: unknown,
  at: Where | undefined,
  seen: Seen,
): Fault | undefined {
  let last: Fault | undefined
  const here: Instance<unknown> = {
    schema,
    value,
    at,
    seen,
    wrong(error, part) {
      last = part && !part.bare ? part : { at, error }
    },
  }
  const ref = schema.__absolute_ref__ ?? schema.__absolute_recursive_ref__
  if (ref !== undefined) {
    const target = lookup[ref]
    if (target === undefined) throw new SchemaProblem('$ref does not lead to a schema in this document')
    const fault = run.check(target, value, at, seen)
    if (fault) here.wrong(() => 'A subschema had errors.', fault)
  }
  checkAny(run, here)
  if (typeof value === 'string') checkString(run, here as Instance<string>)
  else if (typeof value === 'number') checkNumber(run, here as Instance<number>)
  else if (Array.isArray(value)) checkArray(run, here as Instance<unknown[]>)
  else if (typeof value === 'object' && value !== null) checkObject(run, here as Instance<Record<string, unknown>>)
  return last
}
