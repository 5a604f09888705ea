import type { Operation, Parameter, ParameterStyle } from './compiled.ts'
import { DocumentProblem, followed, isObject, type Json, member, memberPlace, type Placed } from './document.ts'
import { type SchemaBudget, schemaOf } from './schema.ts'

/** A document has no word about these (OpenAPI 3.1, "Parameter Object"), or they belong to the request itself. */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'authorization', 'cookie', 'host', 'content-length', 'transfer-encoding', 'connection'],
  ...['idempotency-key', 'user-agent', 'upgrade', 'te', 'trailer', 'expect', 'keep-alive', 'proxy-authorization'],
])
const IN = ['path', 'query', 'header', 'cookie'] as const
const STYLES: Readonly<Record<Parameter['in'], readonly ParameterStyle[]>> = {
  path: ['simple'],
  header: ['simple'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
}
const MOST_PARAMETERS = 100

interface Of {
  path: string
  item: Placed<Json>
  operation: Placed<Json>
  budget: SchemaBudget
}

/** Parameters of the path item and of the operation, which may say something else about one of the same name and place. */
export function parametersOf(root: Json, { path, item, operation, budget }: Of): Parameter[] {
  const found = new Map<string, Placed<Json>>()
  for (const part of [item, operation]) {
    const list = member(part.value, 'parameters')
    const place = memberPlace(part.place, 'parameters')
    if (list === undefined) continue
    if (!Array.isArray(list)) throw new DocumentProblem(place, 'expected a list of parameters')
    for (const [n, value] of list.entries()) {
      const one = followed(root, { value: value as unknown, place: memberPlace(place, n) }, 'a parameter')
      found.set(JSON.stringify([one.value.in, one.value.name]), one)
    }
  }
  if (found.size > MOST_PARAMETERS) {
    throw new DocumentProblem(
      memberPlace(operation.place, 'parameters'),
      `expected at most ${MOST_PARAMETERS} parameters`,
    )
  }
  const parameters = [...found.values()].flatMap(one => parameterOf(root, one, budget) ?? [])
  const inPath = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name!)
  for (const name of inPath) {
    if (parameters.some(one => one.in === 'path' && one.name === name)) continue
    throw new DocumentProblem(item.place, `{${name}} is not among the parameters`)
  }
  const stray = parameters.find(one => one.in === 'path' && !inPath.includes(one.name))
  if (stray) throw new DocumentProblem(item.place, `the parameter ${stray.name} has no place in the path`)
  return named(parameters)
}

function parameterOf(root: Json, { value, place }: Placed<Json>, budget: SchemaBudget): Parameter | undefined {
  const { name, in: where, style, explode } = value
  const found = IN.find(one => one === where)
  if (found === undefined) throw new DocumentProblem(memberPlace(place, 'in'), `expected one of ${IN.join(', ')}`)
  if (typeof name !== 'string' || name === '' || name === '__proto__' || name.length > 128) {
    throw new DocumentProblem(memberPlace(place, 'name'), 'expected a name of 1 to 128 characters')
  }
  const required = found === 'path' || value.required === true
  if (found === 'cookie') {
    if (!required) return undefined
    throw new DocumentProblem(place, 'a cookie can be a security scheme and no parameter')
  }
  if (found === 'header') {
    if (RESERVED_HEADERS.has(name.toLowerCase())) return undefined
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
      throw new DocumentProblem(memberPlace(place, 'name'), 'expected a header')
  }
  const usual = STYLES[found][0]!
  const content = member(value, 'content')
  const [type, media] = isObject(content) ? (Object.entries(content)[0] ?? []) : []
  if (content !== undefined && (type === undefined || !isJsonType(type))) {
    throw new DocumentProblem(memberPlace(place, 'content'), 'expected application/json')
  }
  const given = style === undefined ? usual : STYLES[found].find(one => one === style)
  if (given === undefined) {
    throw new DocumentProblem(memberPlace(place, 'style'), `expected one of ${STYLES[found].join(', ')}`)
  }
  const at = content === undefined ? memberPlace(place, 'schema') : memberPlace(place, 'content', type!, 'schema')
  const schema = schemaOf(root, member(content === undefined ? value : media, 'schema') ?? {}, at, budget)
  const { description } = value
  return {
    argument: name,
    name,
    in: found,
    required,
    style: content === undefined ? given : 'json',
    explode: typeof explode === 'boolean' ? explode : given === 'form' || given === 'deepObject',
    schema:
      typeof description === 'string' && description !== ''
        ? { ...schema, description: description.slice(0, 500).toWellFormed() }
        : schema,
  }
}

/** Names that models can use; of two that would be equal, one says where it stands. */
function named(parameters: readonly Parameter[]): Parameter[] {
  const taken = new Set(['body', 'cursor'])
  return parameters
    .toSorted((a, b) => IN.indexOf(a.in) - IN.indexOf(b.in))
    .map(one => {
      const plain = one.name.replaceAll(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 50)
      let argument = taken.has(plain) ? `${one.in}_${plain}` : plain
      for (let n = 2; taken.has(argument); n++) argument = `${one.in}_${plain}_${n}`
      taken.add(argument)
      return { ...one, argument }
    })
}

interface BodyOf {
  method: string
  operation: Placed<Json>
  budget: SchemaBudget
}

/** The body of a request, which has to be JSON. */
export function bodyOf(root: Json, { method, operation, budget }: BodyOf): Operation['body'] {
  const given = member(operation.value, 'requestBody')
  // The standard gives a body of these no meaning, and intermediaries drop it.
  if (given === undefined || method === 'get' || method === 'head') return undefined
  const { value, place } = followed(
    root,
    { value: given, place: memberPlace(operation.place, 'requestBody') },
    'a request body',
  )
  const content = member(value, 'content')
  const at = memberPlace(place, 'content')
  if (!isObject(content)) throw new DocumentProblem(at, 'expected an object of media types')
  const contentType = Object.keys(content).find(isJsonType)
  if (contentType === undefined) {
    if (value.required !== true) return undefined
    throw new DocumentProblem(at, 'expected application/json among the media types: others cannot be sent')
  }
  const schema = schemaOf(
    root,
    member(content[contentType], 'schema') ?? {},
    memberPlace(at, contentType, 'schema'),
    budget,
  )
  return { required: value.required === true, contentType: plainType(contentType), schema }
}

const isJsonType = (type: string) => /^(?:application|text)\/(?:[a-z0-9.+-]+\+)?json(?:\s*;.*)?$|^\*\/\*$/i.test(type)
const plainType = (type: string) =>
  type.startsWith('*') ? 'application/json' : type.replace(/\s*;.*$/, '').toLowerCase()
