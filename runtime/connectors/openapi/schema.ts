import { DocumentProblem, isObject, type Json, member, memberPlace, target } from './document.ts'

/** Keywords that are taken over as they are. */
const PLAIN = [
  ...['enum', 'const', 'format', 'minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'minItems', 'maxItems'],
  ...['uniqueItems', 'minProperties', 'maxProperties', 'default'],
]
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])
const MOST_DESCRIPTION = 500

/** How much may come of all schemas of one install; references to references can grow without any bound. */
export interface SchemaBudget {
  left: number
}

/**
 * A schema of OpenAPI 3.0 or 3.1 as JSON Schema 2020-12, complete in itself. A reference that comes back to itself allows
 * anything from there on. Patterns become a part of the description: a regular expression could be one that takes for ever.
 */
export function schemaOf(root: Json, given: unknown, place: string, budget: SchemaBudget): Json {
  return read(given, place, [])

  function read(schema: unknown, at: string, above: readonly string[]): Json {
    if (--budget.left < 0) {
      throw new DocumentProblem(at, 'the schemas of the chosen operations are too large together: choose fewer')
    }
    if (schema === true) return {}
    if (schema === false) return { not: {} }
    if (!isObject(schema)) throw new DocumentProblem(at, 'expected a schema')
    if (member(schema, '$ref') === undefined) return plain(schema, at, above)
    const { value, place: next } = target(root, schema.$ref, at)
    if (above.includes(next)) return {}
    const found = read(value, next, [...above, next])
    const description = textOf(schema.description)
    return description === undefined ? found : { ...found, description }
  }

  function plain(schema: Json, at: string, above: readonly string[]): Json {
    const made: Record<string, unknown> = {}
    const inner = (name: string, value: unknown) => read(value, memberPlace(at, name), above)
    const types = typesOf(schema, at)
    if (types.length > 0) made.type = types.length === 1 ? types[0] : types
    for (const name of PLAIN) if (member(schema, name) !== undefined) made[name] = schema[name]
    if (schema.nullable === true && Array.isArray(made.enum)) made.enum = [...(made.enum as unknown[]), null]
    for (const [bound, exclusive] of [
      ['minimum', 'exclusiveMinimum'],
      ['maximum', 'exclusiveMaximum'],
    ] as const) {
      // 3.0 has a flag beside the bound, 3.1 a bound of its own.
      if (typeof schema[exclusive] === 'number') made[exclusive] = schema[exclusive]
      else if (schema[exclusive] === true && made[bound] !== undefined) {
        made[exclusive] = made[bound]
        delete made[bound]
      }
    }
    for (const name of LISTS) {
      const list = member(schema, name)
      if (list === undefined) continue
      if (!Array.isArray(list)) throw new DocumentProblem(memberPlace(at, name), 'expected a list of schemas')
      made[name] = list.map((one, n) => read(one, memberPlace(at, name, n), above))
    }
    for (const name of ['items', 'not', 'additionalProperties']) {
      const value = member(schema, name)
      if (typeof value === 'boolean' ? name === 'additionalProperties' : value !== undefined) {
        made[name] = typeof value === 'boolean' ? value : inner(name, value)
      }
    }
    Object.assign(made, members(schema, at, above))
    const pattern = textOf(member(schema, 'pattern'))
    const description = [textOf(member(schema, 'description')), pattern && `Pattern: ${pattern}`].filter(Boolean)
    if (description.length > 0) made.description = description.join(' ').slice(0, MOST_DESCRIPTION).toWellFormed()
    return made
  }

  /** What a service alone may set is no argument. */
  function members(schema: Json, at: string, above: readonly string[]): Json {
    const properties = member(schema, 'properties')
    const required = member(schema, 'required')
    if (properties !== undefined && !isObject(properties)) {
      throw new DocumentProblem(memberPlace(at, 'properties'), 'expected an object of schemas')
    }
    const own = Object.entries(properties ?? {}).filter(([, one]) => member(one, 'readOnly') !== true)
    const made = own.map(([name, one]) => [name, read(one, memberPlace(at, 'properties', name), above)] as const)
    const names = Array.isArray(required) ? required.filter(name => typeof name === 'string') : []
    const hidden = new Set(Object.keys(properties ?? {}).filter(name => !own.some(([one]) => one === name)))
    const needed = names.filter(name => !hidden.has(name))
    return {
      ...(properties !== undefined && { properties: Object.fromEntries(made) }),
      ...(needed.length > 0 && { required: needed }),
    }
  }

  function typesOf(schema: Json, at: string): string[] {
    const type = member(schema, 'type')
    const given: unknown[] = type === undefined ? [] : Array.isArray(type) ? type : [type]
    for (const one of given) {
      if (typeof one !== 'string' || !TYPES.has(one)) {
        throw new DocumentProblem(memberPlace(at, 'type'), `expected one of ${[...TYPES].join(', ')}`)
      }
    }
    const types = given as string[]
    return schema.nullable === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types
  }
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
