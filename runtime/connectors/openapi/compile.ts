import { CUSTOM_ACTION } from '../../../shared/wire/runtime/catalog.ts'
import type { ChosenOperation } from '../../../shared/wire/runtime/connector.ts'
import type { CompiledApi, Operation } from './compiled.ts'
import { DocumentProblem, type Json, member, memberPlace, objectAt, type Placed } from './document.ts'
import { bodyOf, parametersOf } from './parameters.ts'
import type { SchemaBudget } from './schema.ts'
import { chosenSecurity, schemesOf } from './security.ts'

const METHODS = ['get', 'head', 'put', 'delete', 'post', 'patch'] as const
type Method = (typeof METHODS)[number]
/** What a second call does, unless the document says otherwise. */
export const EFFECT = {
  get: 'read',
  head: 'read',
  put: 'idempotent',
  delete: 'idempotent',
  post: 'once',
  patch: 'once',
} as const
export const MOST_SCHEMAS = 10_000
const MOST_CHARACTERS = 512 * 1024
const MOST_ABOUT = 500

interface Found {
  method: Method
  path: string
  item: Placed<Json>
  operation: Placed<Json>
}

/**
 * What becomes of a document and the operations that were chosen of it. Only these are looked at, so that a fault in the rest
 * of a large document does not block the part that is needed. Throws a DocumentProblem.
 */
export function compile(
  root: Json,
  chosen: readonly (string | ChosenOperation)[] | undefined,
  testOperation: string | undefined,
): CompiledApi {
  const all = operationsIn(root)
  if (chosen === undefined) {
    throw new DocumentProblem('operations', `Required: name those that become actions, of ${some([...all.keys()])}`)
  }
  const budget: SchemaBudget = { left: MOST_SCHEMAS }
  const operations: Operation[] = []
  const byId = new Map<string, string>()
  for (const [n, entry] of chosen.entries()) {
    const wanted: ChosenOperation = typeof entry === 'string' ? { operationId: entry } : entry
    const found = all.get(wanted.operationId)
    if (found === undefined) {
      throw new DocumentProblem(
        `operations.${n}`,
        `the document has no such operationId; it has ${some([...all.keys()])}`,
      )
    }
    const operation = operationOf(root, wanted, found, `operations.${n}`, budget)
    if (operations.some(({ name }) => name === operation.name)) {
      throw new DocumentProblem(`operations.${n}`, `${operation.name} is chosen twice: give one of them another name`)
    }
    operations.push(operation)
    byId.set(wanted.operationId, operation.name)
  }
  const used = new Set(operations.flatMap(({ security }) => security))
  const schemes = schemesOf(root, used)
  const probe = probeOf(operations, testOperation, byId)
  const title = member(member(root, 'info'), 'title')
  const server = serverOf(root)
  const api: CompiledApi = {
    title: typeof title === 'string' && title !== '' ? title.slice(0, 256).toWellFormed() : 'HTTP',
    schemes,
    operations,
    ...(server !== undefined && { server }),
    ...(probe !== undefined && { probe }),
  }
  if (JSON.stringify(api).length > MOST_CHARACTERS) {
    throw new DocumentProblem('operations', 'the chosen operations are too large together: choose fewer')
  }
  return api
}

/** Every operation that has an id, in the order of the document. */
export function operationsIn(root: Json): Map<string, Found> {
  const paths = objectAt({ value: member(root, 'paths'), place: '#/paths' }, 'an object of paths')
  const found = new Map<string, Found>()
  for (const [path, value] of Object.entries(paths.value)) {
    if (path.startsWith('x-')) continue
    const item = objectAt({ value, place: memberPlace('#/paths', path) }, 'a path item')
    if (member(item.value, '$ref') !== undefined) {
      throw new DocumentProblem(memberPlace(item.place, '$ref'), 'a path item has to stand here itself')
    }
    for (const method of METHODS) {
      const given = member(item.value, method)
      if (given === undefined) continue
      const operation = objectAt({ value: given, place: memberPlace(item.place, method) }, 'an operation')
      const id = member(operation.value, 'operationId')
      if (id === undefined) continue
      const place = memberPlace(operation.place, 'operationId')
      if (typeof id !== 'string') throw new DocumentProblem(place, 'expected a string')
      if (found.has(id)) throw new DocumentProblem(place, `${id.slice(0, 100)} is the id of another operation as well`)
      found.set(id, { method, path, item, operation })
    }
  }
  if (found.size === 0) throw new DocumentProblem('#/paths', 'expected at least one operation with an operationId')
  return found
}

/** One operation as an action, complete in itself. */
export function operationOf(
  root: Json,
  wanted: ChosenOperation,
  { method, path, item, operation }: Found,
  entry: string,
  budget: SchemaBudget,
): Operation {
  const { operationId, pages, result } = wanted
  const name = wanted.name ?? operationId.replaceAll(/[^A-Za-z0-9_-]+/g, '_')
  if (!CUSTOM_ACTION.test(name)) {
    throw new DocumentProblem(
      entry,
      `${name.slice(0, 64)} is too long for an action: give it a name of up to 38 characters`,
    )
  }
  for (const part of [item, operation]) {
    if (member(part.value, 'servers') === undefined) continue
    const message = 'an operation with servers of its own cannot be an action: credentials go to one address'
    throw new DocumentProblem(memberPlace(part.place, 'servers'), message)
  }
  if (!/^\/[\x21-\x7e]*$/.test(path) || /[?#\\]/.test(path) || path.split('/').some(part => /^\.{1,2}$/.test(part))) {
    throw new DocumentProblem(item.place, "expected a path that begins with '/' and has no '?', '#', '.' or '..'")
  }
  const parameters = parametersOf(root, { path, item, operation, budget })
  const page = pages && parameters.find(one => one.in === 'query' && one.name === pages.parameter)
  if (pages && !page) {
    throw new DocumentProblem(`${entry}.pages.parameter`, `${operationId} has no query parameter ${pages.parameter}`)
  }
  const body = bodyOf(root, { method, operation, budget })
  const about = [operation.value.summary, operation.value.description].find(
    one => typeof one === 'string' && one !== '',
  )
  return {
    name,
    about: (typeof about === 'string' ? about : `${method.toUpperCase()} ${path}`).slice(0, MOST_ABOUT).toWellFormed(),
    method: method.toUpperCase() as Operation['method'],
    path,
    effect: wanted.effect ?? EFFECT[method],
    security: chosenSecurity(root, operation),
    parameters: parameters.filter(one => one !== page),
    ...(body && { body }),
    ...(result !== undefined && { result }),
    ...(pages && { pages: { parameter: pages.parameter, ...(pages.next !== undefined && { next: pages.next }) } }),
  }
}

/** The first server, its variables at their defaults; undefined where it is no address of its own. */
export function serverOf(root: Json): string | undefined {
  const servers = member(root, 'servers')
  const first: unknown = Array.isArray(servers) ? servers[0] : undefined
  if (first === undefined) return undefined
  const url = member(first, 'url')
  if (typeof url !== 'string') throw new DocumentProblem('#/servers/0/url', 'expected an address')
  const made = url.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => {
    const value = member(member(member(first, 'variables'), name), 'default')
    if (typeof value === 'string') return value
    throw new DocumentProblem(memberPlace('#/servers/0/variables', name), 'expected a default')
  })
  return /^https?:\/\//i.test(made) ? made : undefined
}

function probeOf(operations: readonly Operation[], wanted: string | undefined, byId: ReadonlyMap<string, string>) {
  const free = ({ parameters, body, effect }: Operation) =>
    effect === 'read' && !body?.required && parameters.every(({ required }) => !required)
  if (wanted === undefined) {
    // One that takes credentials says something about them.
    const able = operations.filter(free)
    return (able.find(({ security }) => security.length > 0) ?? able[0])?.name
  }
  const found = operations.find(({ name }) => name === (byId.get(wanted) ?? wanted))
  if (found && free(found)) return found.name
  throw new DocumentProblem('testOperation', 'expected one of the chosen operations that reads and needs no arguments')
}

function some(names: readonly string[]): string {
  const shown = names
    .slice(0, 20)
    .map(name => name.slice(0, 100))
    .join(', ')
    .toWellFormed()
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown
}
