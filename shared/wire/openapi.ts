import { z } from 'zod'
import { isObject } from './aliases.ts'
import type { Answer, Auth, Endpoint } from './endpoint.ts'
import { readOnlyOf } from './read-only.ts'
import { names } from './schema-names.ts'

type Json = { [key: string]: unknown }
type Io = 'input' | 'output'

export interface OpenApiInput {
  title: string
  version: string
  description: string
  servers?: readonly { url: string; description?: string }[]
  endpoints: readonly Endpoint[]
  /** The service's own error body. */
  errorSchema: z.ZodType
}

export interface OpenApiDocument extends Json {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  paths: Record<string, Json>
  components: { schemas: Json; securitySchemes: Json }
}

const schemes: Record<Exclude<Auth, 'none'>, { name: string; scheme: Json }> = {
  bearer: { name: 'bearer', scheme: { type: 'http', scheme: 'bearer', description: 'An API key.' } },
  cookie: { name: 'session', scheme: { type: 'apiKey', in: 'cookie', name: 'wb_session' } },
  'router-key': { name: 'routerKey', scheme: { type: 'apiKey', in: 'header', name: 'x-router-key' } },
  'router-admin': {
    name: 'routerAdminKey',
    scheme: { type: 'apiKey', in: 'header', name: 'x-router-key', description: 'A key with the admin mark.' },
  },
  metrics: { name: 'metricsToken', scheme: { type: 'http', scheme: 'bearer' } },
}

// An empty requirement beside the scheme says that the key is optional (no keys configured, loopback).
const optional: readonly Auth[] = ['router-key', 'metrics']

const reasons: Record<number, string> = {
  400: 'The request is malformed or a field is not valid.',
  401: 'The key is missing or not valid.',
  402: 'A budget does not allow it; nothing was created.',
  403: 'The key lacks the scope, the object belongs to another tenant, or a foreign host or page is named.',
  404: 'The resource does not exist.',
  405: 'The path does not take this method.',
  408: 'The body did not arrive in time.',
  409: 'The state of the object does not allow it.',
  413: 'The body is too large.',
  422: 'No eligible model can take the request, or every answer failed its gates.',
  429: 'Too many tries; see Retry-After.',
  500: 'Our fault.',
  502: 'The upstream failed.',
  503: 'Not available now; see Retry-After.',
  504: 'The overall time limit passed.',
}

/** Walks a JSON Schema and rewrites its local references. */
function rewrite(node: unknown, target: (name: string) => string): unknown {
  if (Array.isArray(node)) return node.map(item => rewrite(item, target))
  if (!isObject(node)) return node
  const out: Json = {}
  for (const [key, value] of Object.entries(node)) {
    out[key] =
      key === '$ref' && typeof value === 'string' && value.startsWith('#/$defs/')
        ? `#/components/schemas/${target(value.slice('#/$defs/'.length))}`
        : rewrite(value, target)
  }
  return out
}

function references(node: unknown, into: Set<string> = new Set()): Set<string> {
  if (Array.isArray(node)) for (const item of node) references(item, into)
  else if (isObject(node))
    for (const [key, value] of Object.entries(node))
      if (key === '$ref' && typeof value === 'string') into.add(value.slice('#/$defs/'.length))
      else references(value, into)
  return into
}

/**
 * The same schema in the words that generators of clients know. They make no code, or code that does not compile, of the others, and a number
 * without a format becomes one of 32 bits, in which a cost is another cost.
 */
function plainly(schema: Json) {
  if (isEmptyObject(schema.default)) delete schema.default
  if (isEmptyObject(schema.additionalProperties)) delete schema.additionalProperties
  if (JSON.stringify(schema.propertyNames) === '{"type":"string"}') delete schema.propertyNames
  if (Number.isInteger(schema.const)) schema.type = 'integer'
  if (schema.type === 'number') schema.format = 'double'
  if (schema.type === 'integer' && Number(schema.maximum ?? Number.MAX_VALUE) > MOST_OF_INT32) schema.format = 'int64'
}

const MOST_OF_INT32 = 2 ** 31 - 1
const isEmptyObject = (value: unknown) => isObject(value) && Object.keys(value).length === 0

function convert(schema: z.ZodType, io: Io): { root: Json; defs: Record<string, Json> } {
  const {
    $schema: _,
    $defs,
    ...root
  } = z.toJSONSchema(schema, {
    io,
    metadata: names,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod
      // zod drops unknown keys of a plain object and so calls its output closed; on the wire such answers may grow.
      if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties
      delete (jsonSchema as Json).id
      plainly(jsonSchema as Json)
    },
  }) as Json & { $defs?: Record<string, Json> }
  return { root, defs: $defs ?? {} }
}

interface Pools {
  input: Record<string, Json>
  output: Record<string, Json>
}

/** Names whose request and answer forms differ (defaults make a field optional going in and certain coming out). */
function split({ input, output }: Pools): Set<string> {
  const differing = new Set(
    Object.keys(input).filter(name => output[name] && JSON.stringify(input[name]) !== JSON.stringify(output[name])),
  )
  for (let grown = true; grown; ) {
    grown = false
    for (const name of Object.keys(input)) {
      if (differing.has(name) || !output[name]) continue
      if ([...references(input[name])].some(ref => differing.has(ref))) {
        differing.add(name)
        grown = true
      }
    }
  }
  return differing
}

/** Says of each choice between components which member tells them apart: readers that do not try each in turn go by that. */
function tellApart(schemas: Json) {
  for (const schema of Object.values(schemas)) {
    if (!isObject(schema) || !Array.isArray(schema.oneOf)) continue
    const refs = schema.oneOf.map((one: Json) => String(one.$ref))
    const constsOf = (ref: string) => {
      const { properties } = (schemas[ref.replace('#/components/schemas/', '')] ?? {}) as { properties?: Json }
      return Object.entries(properties ?? {}).flatMap(([name, one]) =>
        isObject(one) && typeof one.const === 'string' ? [[name, one.const] as const] : [],
      )
    }
    for (const [propertyName] of constsOf(refs[0]!)) {
      const values = refs.flatMap(ref => constsOf(ref).flatMap(([name, value]) => (name === propertyName ? value : [])))
      if (new Set(values).size !== refs.length) continue
      schema.discriminator = { propertyName, mapping: Object.fromEntries(values.map((value, n) => [value, refs[n]])) }
      break
    }
  }
}

/**
 * Without a word of further members, openapi-typescript takes an object of any members for one that has none. In a choice the word
 * stays away: OpenAPI Generator makes Java of it that does not compile.
 */
function openly(node: unknown) {
  if (Array.isArray(node)) for (const one of node) openly(one)
  if (!isObject(node)) return
  const members = isObject(node.properties) ? Object.values(node.properties) : []
  for (const one of [...members, node.items, node.schema])
    if (isObject(one) && one.type === 'object' && one.properties === undefined) one.additionalProperties ??= true
  for (const one of Object.values(node)) openly(one)
}

/** The schemas of a document, each converted once; the named ones are its components. */
function schemaPool() {
  const pools: Pools = { input: {}, output: {} }
  const cache: Record<Io, Map<z.ZodType, Json>> = { input: new Map(), output: new Map() }
  const toJson = (schema: z.ZodType, io: Io): Json => {
    const known = cache[io].get(schema)
    if (known) return known
    const { root, defs } = convert(schema, io)
    Object.assign(pools[io], defs)
    const { id } = names.get(schema) ?? {}
    // A schema that is itself named comes back in full; it belongs into the components like any other.
    if (id !== undefined && root.$ref === undefined) pools[io][id] = root
    const json = id === undefined ? root : { $ref: `#/$defs/${id}` }
    cache[io].set(schema, json)
    return json
  }

  const parameters = (schema: z.ZodType | undefined, place: 'path' | 'query' | 'header'): Json[] => {
    if (!schema) return []
    const json = convert(schema, 'input')
    Object.assign(pools.input, json.defs)
    const required = Array.isArray(json.root.required) ? json.root.required : []
    const properties = isObject(json.root.properties) ? json.root.properties : {}
    return Object.entries(properties).map(([name, property]) => ({
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      schema: property,
    }))
  }

  /** A body, with the members of its record that may stand in it unchanged. */
  const bodyOf = (schema: z.ZodType): Json => {
    const json = toJson(schema, 'input')
    const readOnly = readOnlyOf(schema)
    const name = typeof json.$ref === 'string' ? json.$ref.slice('#/$defs/'.length) : undefined
    const whole = name === undefined ? json : pools.input[name]
    if (readOnly && whole && isObject(whole.properties)) {
      const more = Object.entries(readOnly.members).map(([member, one]) => [
        member,
        { ...toJson(one, 'output'), readOnly: true },
      ])
      whole.properties = { ...whole.properties, ...(Object.fromEntries(more) as Json) }
    }
    return json
  }

  return { pools, toJson, parameters, bodyOf }
}

function contentOf(
  { schema, contentType, asText }: Answer,
  toJson: ReturnType<typeof schemaPool>['toJson'],
): Json | undefined {
  if (!schema && !contentType) return undefined
  const types = typeof contentType === 'string' ? [contentType] : (contentType ?? ['application/json'])
  const text = { type: 'string' }
  const body = schema ? toJson(schema, 'output') : text
  return {
    ...Object.fromEntries(
      types.map(type => [type, { schema: type === 'text/event-stream' && schema ? eventOf(body) : body }]),
    ),
    ...(asText !== undefined && { [asText]: { schema: text } }),
  }
}

/** OpenAPI before 3.2 has no place for the items of a stream: readers of it take the schema for that of one event. */
const eventOf = (data: Json): Json => ({
  type: 'object',
  properties: {
    id: { type: 'string' },
    event: { type: 'string' },
    data: { type: 'string', contentMediaType: 'application/json', contentSchema: data },
  },
  required: ['data'],
})

/** One operation of the document. */
function operationOf(
  e: Endpoint,
  { toJson, parameters, bodyOf }: ReturnType<typeof schemaPool>,
  errorSchema: z.ZodType,
): Json {
  const given = [...parameters(e.params, 'path'), ...parameters(e.query, 'query'), ...parameters(e.headers, 'header')]
  if (e.idempotent)
    given.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      schema: { type: 'string', pattern: '^[ -~]{1,255}$' },
    })
  const responses: Json = {}
  for (const [status, answer] of Object.entries(e.responses)) {
    const body = contentOf(answer, toJson)
    const headers = answer.headers
      ? Object.fromEntries(
          Object.entries(answer.headers).map(([name, text]) => [
            name,
            { description: text, schema: { type: 'string' } },
          ]),
        )
      : undefined
    responses[status] = {
      description: answer.description,
      ...(headers && { headers }),
      ...(body && { content: body }),
    }
  }
  const failure = { 'application/json': { schema: toJson(e.errorSchema ?? errorSchema, 'output') } }
  for (const status of e.errors)
    responses[status] ??= { description: reasons[status] ?? 'The request failed.', content: failure }
  return {
    operationId: e.id,
    tags: [e.tag],
    summary: e.summary,
    ...(e.description !== undefined && { description: e.description }),
    ...(given.length > 0 && { parameters: given }),
    ...(e.body && {
      requestBody: {
        required: !e.body.safeParse(undefined).success,
        content: { 'application/json': { schema: bodyOf(e.body) } },
      },
    }),
    responses,
    security: e.auth === 'none' ? [] : [{ [schemes[e.auth].name]: [] }, ...(optional.includes(e.auth) ? [{}] : [])],
    ...(e.scopes && { 'x-scopes': [...e.scopes] }),
  }
}

/** Builds the OpenAPI 3.1 document. Costs tens of milliseconds, so callers build it on first use, never at import. */
export function openapi({
  title,
  version,
  description,
  servers,
  endpoints,
  errorSchema,
}: OpenApiInput): OpenApiDocument {
  const schemasOf = schemaPool()
  const { pools } = schemasOf
  const paths: Record<string, Json> = {}
  const inputSide: Json[] = []
  for (const e of endpoints) {
    const made = operationOf(e, schemasOf, errorSchema)
    inputSide.push(made)
    paths[e.path] = { ...paths[e.path], [e.method.toLowerCase()]: made }
  }

  const differing = split(pools)
  const nameFor = (io: Io) => (name: string) => (io === 'input' && differing.has(name) ? `${name}Input` : name)
  for (const made of inputSide) {
    made.responses = rewrite(made.responses, nameFor('output'))
    if (made.requestBody) made.requestBody = rewrite(made.requestBody, nameFor('input'))
    if (made.parameters) made.parameters = rewrite(made.parameters, nameFor('input'))
  }
  const schemas: Json = {}
  for (const io of ['output', 'input'] as const)
    for (const [name, json] of Object.entries(pools[io])) schemas[nameFor(io)(name)] ??= rewrite(json, nameFor(io))

  tellApart(schemas)
  openly(paths)
  openly(schemas)

  const used = new Set(endpoints.map(e => e.auth))
  const securitySchemes: Json = {}
  for (const [auth, { name, scheme }] of Object.entries(schemes))
    if (used.has(auth as Auth)) securitySchemes[name] = scheme
  return {
    openapi: '3.1.0',
    info: { title, version, description },
    ...(servers && { servers: [...servers] }),
    tags: [...new Set(endpoints.map(e => e.tag))].map(name => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes,
    },
  }
}
