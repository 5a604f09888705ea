import { describe, expect, it } from 'vitest'
import type { Endpoint } from './endpoint.ts'
import { type OpenApiDocument, openapi } from './openapi.ts'
import { routerEndpoints } from './router/endpoints.ts'
import { routerError } from './router/error.ts'
import { runtimeEndpoints } from './runtime/endpoints.ts'
import { errorBody } from './runtime/error.ts'
import { isScope } from './runtime/scopes.ts'

type Node = Record<string, unknown>
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

function* nodes(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodes(item)
  else if (isNode(value)) {
    yield value
    for (const item of Object.values(value)) yield* nodes(item)
  }
}

const nodesOf = (properties: Node) => Object.values(properties).filter(isNode)

function resolve(document: unknown, pointer: string): unknown {
  return pointer
    .slice(2)
    .split('/')
    .reduce<unknown>((at, key) => (isNode(at) ? at[key] : undefined), document)
}

const operations = (document: OpenApiDocument) =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation: operation as Node })),
  )

const build = (title: string, endpoints: readonly Endpoint[], errorSchema: typeof errorBody | typeof routerError) =>
  openapi({
    title,
    version: '0.3.0',
    description: 'A service.',
    servers: [{ url: 'http://localhost:8080' }],
    endpoints,
    errorSchema,
  })

const services = [
  { name: 'runtime', endpoints: runtimeEndpoints, document: build('Runtime', runtimeEndpoints, errorBody) },
  { name: 'router', endpoints: routerEndpoints, document: build('Router', routerEndpoints, routerError) },
]

describe.each(services)('the $name document', ({ endpoints, document }) => {
  it('is OpenAPI 3.1 and survives JSON', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(JSON.parse(JSON.stringify(document))).toEqual(document)
  })

  it('names the member that tells the kinds of a record apart', () => {
    for (const { oneOf, discriminator } of nodes(document)) {
      if (!Array.isArray(oneOf) || !oneOf.every(one => isNode(one) && '$ref' in one)) continue
      const { propertyName, mapping } = discriminator as { propertyName: string; mapping: Record<string, string> }
      expect(Object.values(mapping).sort()).toEqual(oneOf.map(({ $ref }) => $ref as string).sort())
      for (const [value, ref] of Object.entries(mapping))
        expect(resolve(document, `${ref}/properties/${propertyName}`)).toMatchObject({ const: value })
    }
  })

  it('says nothing in words that generators of clients stumble over', () => {
    for (const node of nodes(document)) {
      if (typeof node.const === 'number') expect(node.type).toBe('integer')
      for (const one of isNode(node.properties) ? nodesOf(node.properties) : []) expect(one.type).not.toBe('null')
      if (node.type === 'number') expect(node.format).toBe('double')
      if (node.type === 'integer' && node.const === undefined)
        expect(Number(node.maximum) < 2 ** 31 || node.format === 'int64').toBe(true)
      expect(node.default).not.toEqual({})
      expect(node.propertyNames).not.toEqual({ type: 'string' })
      expect(node.additionalProperties).not.toEqual({})
      // openapi-typescript takes an object for one without members, and OpenAPI Generator makes wrong Java of a choice with true.
      const single = [...(isNode(node.properties) ? nodesOf(node.properties) : []), node.items, node.schema].filter(
        isNode,
      )
      for (const one of single)
        if (one.type === 'object' && one.properties === undefined) expect(one.additionalProperties).toBeDefined()
      for (const one of (node.anyOf ?? node.oneOf ?? []) as Node[]) expect(one.additionalProperties).not.toBe(true)
    }
  })

  it('resolves every reference and leaves no private definitions', () => {
    const refs = [...nodes(document)].flatMap(node => (typeof node.$ref === 'string' ? [node.$ref] : []))
    expect(refs.length).toBeGreaterThan(10)
    for (const ref of refs) expect(resolve(document, ref), ref).toBeDefined()
    for (const node of nodes(document)) {
      expect(node.$defs).toBeUndefined()
      expect(node.$schema).toBeUndefined()
    }
  })

  it('declares every path parameter, required, and no other', () => {
    for (const { path, operation } of operations(document)) {
      const declared = ((operation.parameters ?? []) as Node[]).filter(p => p.in === 'path')
      expect(declared.map(p => p.name).sort(), path).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(m => m[1]).sort())
      for (const parameter of declared) expect(parameter.required).toBe(true)
    }
  })

  it('has one operation for each endpoint and unique operation ids', () => {
    const ids = operations(document).map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBe(endpoints.length)
    expect(new Set(endpoints.map(e => `${e.method} ${e.path}`)).size).toBe(endpoints.length)
  })

  it('says 400 where a part of the path may be refused, and what an event of a stream is', () => {
    for (const { path, operation } of operations(document)) {
      const bounded = ((operation.parameters ?? []) as Node[]).some(
        ({ in: place, schema }) => place === 'path' && isNode(schema) && ('minLength' in schema || 'pattern' in schema),
      )
      const responses = operation.responses as Node
      if (bounded) expect(Object.keys(responses), path).toContain('400')
      const content = (responses['200'] as Node | undefined)?.content
      const stream = isNode(content) ? content['text/event-stream'] : undefined
      if (stream !== undefined)
        expect(stream, path).toMatchObject({ schema: { properties: { data: { type: 'string' } } } })
    }
  })

  it('describes every answer and names the security that it uses', () => {
    const known = Object.keys(document.components.securitySchemes)
    for (const { operation } of operations(document)) {
      for (const answer of Object.values(operation.responses as Node)) expect((answer as Node).description).toBeTruthy()
      for (const requirement of operation.security as Node[])
        for (const scheme of Object.keys(requirement)) expect(known).toContain(scheme)
    }
  })
})

describe('the runtime document', () => {
  const [{ document }] = services as [(typeof services)[0]]
  const operation = (path: string, method: string) => document.paths[path]?.[method] as Node

  it('says which scopes open an operation, any one of them', () => {
    expect(operation('/v1/runs/{id}/cancel', 'post')['x-scopes']).toEqual(['runs:write', 'runs:execute'])
    for (const e of runtimeEndpoints) for (const scope of e.scopes ?? []) expect(isScope(scope), e.id).toBe(true)
  })

  it('asks a bearer and a scope on all of /v1/ and on nothing else', () => {
    for (const e of runtimeEndpoints) {
      // Behind /mcp each tool asks for the scope of its own operation.
      expect(e.auth === 'bearer', e.id).toBe(e.path.startsWith('/v1/') || e.path === '/mcp')
      expect((e.scopes?.length ?? 0) > 0, e.id).toBe(e.path.startsWith('/v1/'))
    }
  })

  it('offers Idempotency-Key on every creating POST of the contract', () => {
    const paths = runtimeEndpoints.filter(e => e.idempotent).map(e => e.path)
    expect(paths.sort()).toEqual(
      [
        '/v1/agents',
        '/v1/api-keys',
        '/v1/connectors/install',
        '/v1/connectors/{connectorId}/execute',
        '/v1/nodes',
        '/v1/runs',
        '/v1/runs/{id}/fork',
        '/v1/runs/{id}/retry',
        '/v1/schedules',
        '/v1/sessions',
        '/v1/sessions/{id}/messages',
        '/v1/tenants',
        '/v1/tenants/{id}/api-keys',
        '/v1/users',
        '/v1/webhooks',
      ].sort(),
    )
  })

  it('tells what goes in apart from what comes out', () => {
    const { schemas } = document.components
    expect((schemas.ManifestInput as Node).required).toBeUndefined()
    expect((schemas.Manifest as Node).required).toContain('limits')
    expect(operation('/v1/runs/{id}/cancel', 'post').requestBody).toMatchObject({ required: false })
    expect(operation('/v1/runs', 'post').requestBody).toMatchObject({ required: true })
  })

  it('keeps answers open for additions and requests closed', () => {
    const { schemas } = document.components
    expect((schemas.Run as Node).additionalProperties).toBeUndefined()
    expect((schemas.RunCreate as Node).additionalProperties).toBe(false)
  })

  it('carries limit with its bounds on lists', () => {
    const limit = (operation('/v1/runs', 'get').parameters as Node[]).find(p => p.name === 'limit')
    expect(limit).toMatchObject({
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
    })
  })
})

describe('the router document', () => {
  it('answers errors on each dialect path in that dialect', () => {
    const document = services[1]?.document as OpenApiDocument
    const schemaOf = (path: string) => {
      const failure = resolve(document.paths[path], '#/post/responses/502/content')
      return isNode(failure) ? failure['application/json'] : undefined
    }
    expect(schemaOf('/v1/messages')).toEqual({ schema: { $ref: '#/components/schemas/MessagesError' } })
    expect(schemaOf('/v1/chat/completions')).toEqual({ schema: { $ref: '#/components/schemas/ChatError' } })
    expect(schemaOf('/v1/responses')).toEqual({ schema: { $ref: '#/components/schemas/ChatError' } })
    expect(schemaOf('/v1/{rest}')).toEqual({ schema: { $ref: '#/components/schemas/RouterError' } })
  })
})

it('says of every operation with a scope that it refuses unknown parameters and waits for its store', () => {
  const untold = runtimeEndpoints.filter(
    ({ scopes, errors }) => scopes !== undefined && ![400, 401, 403, 500, 503].every(status => errors.includes(status)),
  )
  expect(untold.map(({ id }) => id)).toEqual([])
})

it('names both forms of a journal, and the refusal of a foreign host by each path of the router', () => {
  const [runtime, router] = services
  expect(resolve(runtime?.document.paths['/v1/runs/{id}/journal'], '#/get/responses/200/content')).toEqual({
    'application/json': { schema: { $ref: '#/components/schemas/JournalExport' } },
    'application/x-ndjson': { schema: { type: 'string' } },
  })
  for (const { path, operation } of operations(router!.document))
    expect(operation.responses, path).toHaveProperty('403')
})
