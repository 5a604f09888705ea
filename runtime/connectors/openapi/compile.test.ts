import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { petsChosen, petsDocument } from '../testing/pets.ts'
import { compile } from './compile.ts'
import { DocumentProblem, readDocument } from './document.ts'

const problemOf = async (text: string | Record<string, unknown>, chosen: Parameters<typeof compile>[1]) => {
  try {
    compile(await readDocument(text), chosen, undefined)
  } catch (error) {
    if (error instanceof DocumentProblem) return `${error.place}: ${error.message}`
    throw error
  }
  return undefined
}

const doc = (operation: object, more: object = {}, path = '/a') => ({
  openapi: '3.0.3',
  info: { title: 'A', version: '1' },
  servers: [{ url: 'https://a.example' }],
  paths: { [path]: { post: { operationId: 'go', ...operation } } },
  ...more,
})
const inQuery = (more: object) => doc({ parameters: [{ name: 'q', in: 'query', ...more }] })
const body = (schema: unknown) => doc({ requestBody: { content: { 'application/json': { schema } } } })
const scheme = (one: unknown) => doc({ security: [{ s: [] }] }, { components: { securitySchemes: { s: one } } })
const nested = (levels: number): unknown => (levels === 0 ? {} : { type: 'array', items: nested(levels - 1) })
/** Each schema holds the next one twice: 2^40 of them, if all were written out. */
const doubling = Object.fromEntries(
  Array.from({ length: 40 }, (_, n) => [
    `s${n}`,
    {
      type: 'object',
      properties: { a: { $ref: `#/components/schemas/s${n + 1}` }, b: { $ref: `#/components/schemas/s${n + 1}` } },
    },
  ]),
)

describe('a document that is not one', () => {
  it.each<[string | Record<string, unknown>, string]>([
    ['', '#: expected an OpenAPI document'],
    ['[1]', '#: expected an OpenAPI document'],
    ['openapi: 3.1.0\npaths:\n  /a: [', '#: line '],
    ['{"openapi": "3.1.0", "paths": {,}}', '#: line 1, column '],
    [`a: &a [x, x]\nb: &b [*a, *a]\n${'c: [*b, *b, *b]\n'.repeat(1)}openapi: 2\n`, '#/openapi: expected the version'],
    [`openapi: 3.1.0\nx: ${'['.repeat(200)}${']'.repeat(200)}`, 'expected at most 100 levels'],
    [`x: ${'['.repeat(100_000)}`, '#: '],
    ['a: &a { b: *a }\nopenapi: 3.1.0', '#'],
    [`${'x'.repeat(2 * 1024 * 1024)}x`, '#: expected at most 2097152 characters'],
    ['swagger: "2.0"', '#/swagger: expected OpenAPI 3.0 or 3.1'],
    [{ openapi: '4.0.0', paths: {} }, '#/openapi: expected the version'],
    [{ openapi: '3.1.0' }, '#/paths: expected an object of paths'],
    [{ openapi: '3.1.0', paths: {} }, '#/paths: expected at least one operation'],
    [{ openapi: '3.1.0', paths: { '/a': 7 } }, '#/paths/~1a: expected a path item'],
    [{ openapi: '3.1.0', paths: { '/a': { get: null } } }, '#/paths/~1a/get: expected an operation'],
    [doc({ operationId: 7 }), '#/paths/~1a/post/operationId: expected a string'],
    [doc({}, {}, 'a'), "#/paths/a: expected a path that begins with '/'"],
    [doc({}, {}, '/a/../b'), '#/paths/~1a~1..~1b: expected a path'],
    [doc({}, {}, '/a/{id}'), '#/paths/~1a~1{id}: {id} is not among the parameters'],
    [doc({ parameters: {} }), '#/paths/~1a/post/parameters: expected a list'],
    [doc({ parameters: [7] }), '#/paths/~1a/post/parameters/0: expected a parameter'],
    [inQuery({ in: 'body' }), '#/paths/~1a/post/parameters/0/in: expected one of path, query'],
    [inQuery({ name: 7 }), '#/paths/~1a/post/parameters/0/name: expected a name'],
    [inQuery({ in: 'path' }), '#/paths/~1a: the parameter q has no place in the path'],
    [inQuery({ style: 'matrix' }), '#/paths/~1a/post/parameters/0/style: expected one of form'],
    [inQuery({ schema: 'x' }), '#/paths/~1a/post/parameters/0/schema: expected a schema'],
    [inQuery({ schema: { type: 'file' } }), '#/paths/~1a/post/parameters/0/schema/type: expected one of string'],
    [inQuery({ content: { 'text/xml': {} } }), '#/paths/~1a/post/parameters/0/content: expected application/json'],
    [inQuery({ in: 'cookie', required: true }), '#/paths/~1a/post/parameters/0: a cookie can be a security scheme'],
    [body({ $ref: 'https://evil.example/s.json' }), '/schema/$ref: expected a place in this document'],
    [body({ $ref: '#/components/schemas/None' }), '/schema/$ref: #/components/schemas/None is not there'],
    [body({ $ref: '#/__proto__/constructor' }), 'is not there'],
    [body(nested(120)), 'expected at most 100 levels'],
    [doc({ requestBody: { $ref: '#/paths/~1a/post/requestBody' } }), '/requestBody/$ref: leads round in a circle'],
    [doc({ requestBody: { required: true, content: { 'text/plain': {} } } }), '/content: expected application/json'],
    [
      { ...body({ $ref: '#/components/schemas/s0' }), components: { schemas: { ...doubling, s40: {} } } },
      'the schemas of the chosen operations are too large together',
    ],
    [
      doc({ servers: [{ url: 'https://b.example' }] }),
      '#/paths/~1a/post/servers: an operation with servers of its own',
    ],
    [doc({ security: {} }), '#/paths/~1a/post/security: expected a list'],
    [doc({ security: [{ s: [] }] }), '#/components/securitySchemes/s: expected a security scheme'],
    [scheme({ type: 'oauth2', flows: {} }), '#/components/securitySchemes/s/type: expected apiKey, or http'],
    [scheme({ type: 'http', scheme: 'digest' }), '#/components/securitySchemes/s/scheme: expected apiKey, or http'],
    [scheme({ type: 'apiKey', in: 'body', name: 'k' }), '#/components/securitySchemes/s/in: expected header'],
    [
      scheme({ type: 'apiKey', in: 'header', name: 'a b\r\n' }),
      '#/components/securitySchemes/s/name: expected the name',
    ],
    [
      scheme({ type: 'apiKey', in: 'header', name: 'Host' }),
      '#/components/securitySchemes/s/name: Host belongs to the request',
    ],
    [inQuery({ name: '__proto__' }), '#/paths/~1a/post/parameters/0/name: expected a name'],
    [doc({}, { servers: [{ url: 7 }] }), '#/servers/0/url: expected an address'],
    [doc({}, { servers: [{ url: 'https://{x}.a' }] }), '#/servers/0/variables/x: expected a default'],
  ])('says where it is wrong: %#', async (text, said) => {
    expect(await problemOf(text, ['go'])).toContain(said)
  })

  it.each<[Parameters<typeof compile>[1], string]>([
    [undefined, 'operations: Required: name those that become actions, of go'],
    [['stop'], 'operations.0: the document has no such operationId; it has go'],
    [['go', 'go'], 'operations.1: go is chosen twice'],
    [[{ operationId: 'go', pages: { parameter: 'p' } }], 'operations.0.pages.parameter: go has no query parameter p'],
  ])('says what is wrong with the choice: %#', async (chosen, said) => {
    expect(await problemOf(doc({}), chosen)).toContain(said)
  })

  it('is told so whatever stands in the place of whatever part', async () => {
    const whole = JSON.stringify(await readDocument(petsDocument))
    const places = [...whole.matchAll(/"(?:[^"\\]|\\.)*"|true|false|\d+/g)].map(
      ({ index, 0: { length } }) => [index, length] as const,
    )
    const values = fc.oneof(
      fc.json({ maxDepth: 2 }),
      fc.constantFrom('null', '"$ref"', '"#/paths"', '"../x"', '{"$ref":"#"}'),
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), values, async ([at, length], value) => {
        const text = `${whole.slice(0, at)}${value}${whole.slice(at + length)}`
        const said = await problemOf(text, petsChosen)
        if (said !== undefined) expect(said).toMatch(/^(?:#|operations)/)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a document of version 3.0', () => {
  it('gets the words of JSON Schema for its own', async () => {
    const schema = {
      type: 'object',
      required: ['made', 'age'],
      properties: {
        made: { type: 'string', readOnly: true },
        age: { type: 'integer', nullable: true, minimum: 0, exclusiveMinimum: true },
        kind: { type: 'string', nullable: true, enum: ['a', 'b'] },
      },
    }
    const { operations } = compile(await readDocument(body(schema)), ['go'], undefined)
    expect(operations[0]!.body!.schema).toEqual({
      type: 'object',
      required: ['age'],
      properties: {
        age: { type: ['integer', 'null'], exclusiveMinimum: 0 },
        kind: { type: ['string', 'null'], enum: ['a', 'b', null] },
      },
    })
  })

  it('keeps arguments apart that have one name in different places', async () => {
    const parameters = [
      { name: 'id', in: 'query', schema: { type: 'string' } },
      { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
      { name: 'body', in: 'query', schema: { type: 'string' } },
      { name: 'filter[x]', in: 'query', schema: { type: 'string' } },
      { name: 'Authorization', in: 'header', schema: { type: 'string' } },
    ]
    const { operations } = compile(await readDocument(doc({ parameters }, {}, '/a/{id}')), ['go'], undefined)
    expect(operations[0]!.parameters.map(({ argument, name }) => [argument, name])).toEqual([
      ['id', 'id'],
      ['query_id', 'id'],
      ['query_body', 'body'],
      ['filter_x_', 'filter[x]'],
    ])
  })
})
