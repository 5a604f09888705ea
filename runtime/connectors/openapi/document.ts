import { readJson } from '../../../shared/json/read-json.ts'
import { MOST_DOCUMENT_CHARACTERS } from '../../../shared/wire/runtime/connector.ts'

/** What is wrong with an OpenAPI document, and where in it: a JSON Pointer as a fragment, `#/paths/~1pets/get`. */
export class DocumentProblem extends Error {
  override name = 'DocumentProblem'
  readonly place: string
  constructor(place: string, message: string) {
    super(message)
    this.place = place
  }
}

export type Json = Readonly<Record<string, unknown>>

/** A value with the place where it stands. */
export interface Placed<T = unknown> {
  value: T
  place: string
}

const MOST_DEPTH = 100
const MOST_HOPS = 16
/** Of the whole document, each as often as YAML has it by an alias. */
const MOST_VALUES = 250_000

/** Reads the text of a document, JSON or YAML, or takes one that was read already. */
export async function readDocument(given: string | Json): Promise<Json> {
  const value = typeof given === 'string' ? await readText(given) : given
  if (!isObject(value)) throw new DocumentProblem('#', 'expected an OpenAPI document, which is an object')
  checkDepth(value)
  const { openapi, swagger } = value
  if (swagger !== undefined) {
    throw new DocumentProblem('#/swagger', 'expected OpenAPI 3.0 or 3.1: convert the Swagger 2 document first')
  }
  if (typeof openapi !== 'string' || !/^3\.[01]\.\d+/.test(openapi)) {
    throw new DocumentProblem('#/openapi', "expected the version, '3.0.x' or '3.1.x'")
  }
  return value
}

async function readText(text: string): Promise<unknown> {
  if (text.length > MOST_DOCUMENT_CHARACTERS) {
    throw new DocumentProblem('#', `expected at most ${MOST_DOCUMENT_CHARACTERS} characters`)
  }
  let noJson: unknown
  try {
    return readJson(text) as unknown
  } catch (error) {
    noJson = error
  }
  // JSON that is broken is broken YAML as well, and that parser knows the line.
  const { MOST_YAML_CHARACTERS, readYaml, YamlProblem } = await import('./yaml.ts')
  if (text.length > MOST_YAML_CHARACTERS) {
    const most = `expected JSON, or at most ${MOST_YAML_CHARACTERS} characters of YAML`
    throw new DocumentProblem('#', `${most}: convert a larger document to JSON (${said(noJson)})`)
  }
  try {
    return await readYaml(text)
  } catch (error) {
    if (error instanceof YamlProblem) throw new DocumentProblem('#', error.message)
    throw new DocumentProblem('#', `expected JSON or YAML: ${said(error)}`)
  }
}

const said = (error: unknown): string => (error instanceof Error ? error.message : '')

/** Everything that walks a document may do so by calling itself. Aliases of YAML can make one that goes round in a circle. */
export function checkDepth(root: Json): void {
  let level: Opened[] = [{ value: root }]
  let left = MOST_VALUES
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MOST_DEPTH) throw new DocumentProblem(pointerOf(level[0]!), `expected at most ${MOST_DEPTH} levels`)
    const below: Opened[] = []
    for (const inside of level) {
      const values = Object.entries(inside.value)
      left -= values.length
      if (left < 0) throw new DocumentProblem('#', `expected at most ${MOST_VALUES} values`)
      for (const [name, value] of values) if (isOpen(value)) below.push({ value, name, inside })
    }
    level = below
  }
}

interface Opened {
  value: object
  name?: string
  inside?: Opened
}

const isOpen = (value: unknown): value is object => typeof value === 'object' && value !== null

const pointerOf = ({ name, inside }: Opened): string => (inside ? memberPlace(pointerOf(inside), name!) : '#')

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The place of a member. */
export const memberPlace = (place: string, ...names: readonly (string | number)[]): string =>
  names.reduce<string>((made, name) => `${made}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`, place)

/** An own member; what an object inherits is no part of a document. */
export const member = (of: unknown, name: string): unknown =>
  (isObject(of) || Array.isArray(of)) && Object.hasOwn(of, name) ? (of as Json)[name] : undefined

export function objectAt({ value, place }: Placed, what: string): Placed<Json> {
  if (!isObject(value)) throw new DocumentProblem(place, `expected ${what}`)
  return { value, place }
}

/** Where a `$ref` leads: a place of this very document, since nothing else is ever fetched for one. */
export function target(root: Json, ref: unknown, place: string): Placed {
  if (typeof ref !== 'string' || !ref.startsWith('#/')) {
    throw new DocumentProblem(
      memberPlace(place, '$ref'),
      "expected a place in this document, '#/…': others are not fetched",
    )
  }
  let value: unknown = root
  for (const part of ref.slice(2).split('/')) {
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
    value = member(value, name)
    if (value === undefined) throw new DocumentProblem(memberPlace(place, '$ref'), `${ref.slice(0, 200)} is not there`)
  }
  return { value, place: ref }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** An object that may be a `$ref` to another one, followed to its end. */
export function followed(root: Json, given: Placed, what: string): Placed<Json> {
  let at = objectAt(given, what)
  for (let hops = 0; member(at.value, '$ref') !== undefined; hops++) {
    if (hops === MOST_HOPS) throw new DocumentProblem(memberPlace(given.place, '$ref'), 'leads round in a circle')
    at = objectAt(target(root, at.value.$ref, at.place), what)
  }
  return at
}
