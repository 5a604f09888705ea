import { type ActionFixture, type Fixture, get, ok } from './fixture.ts'

/** A made-up API, as YAML: everything that an OpenAPI document can say about a request. */
export const petsDocument = `
openapi: 3.1.0
info: { title: Pets, version: '1' }
servers:
  - url: https://{region}.pets.example/v1
    variables: { region: { default: eu } }
security:
  - petKey: []
paths:
  /pets:
    parameters:
      - $ref: '#/components/parameters/Trace'
    get:
      operationId: pets/list
      summary: Lists pets.
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 1, maximum: 100 } }
        - { name: page, in: query, schema: { type: string } }
        - { name: tag, in: query, schema: { type: array, items: { type: string } } }
        - { name: color, in: query, explode: false, schema: { type: array, items: { type: string } } }
        - { name: filter, in: query, style: deepObject, schema: { type: object, properties: { age: { type: integer } } } }
        - { name: where, in: query, content: { application/json: { schema: { type: object } } } }
    post:
      operationId: createPet
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: '#/components/schemas/Pet' } }
  /pets/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: integer } }
    get:
      operationId: getPet
      description: Reads one pet.
    put:
      operationId: putPet
      requestBody:
        content: { application/merge-patch+json: { schema: { $ref: '#/components/schemas/Pet' } } }
    delete:
      operationId: deletePet
      security: [{ petKey: [], second: [] }]
  /search:
    post:
      operationId: search
      requestBody: { content: { application/json: { schema: { type: object } } } }
components:
  parameters:
    Trace: { name: X-Trace, in: header, schema: { type: string } }
  securitySchemes:
    petKey: { type: apiKey, in: query, name: api_key }
    second: { type: http, scheme: bearer }
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string, minLength: 1, pattern: '^(a+)+$' }
        parent: { $ref: '#/components/schemas/Pet' }
`

export const petsChosen = [
  { operationId: 'pets/list', name: 'list_pets', result: '/data', pages: { parameter: 'page', next: '/next' } },
  ...['createPet', 'getPet', 'putPet', 'deletePet'],
  { operationId: 'search', effect: 'read' as const },
]

const pet = (id: number) => ({ id, name: `pet ${id}` })
const key = { api_key: 'canary-pet-key-0123' }
const list = { ...key, limit: '2', tag: ['small', 'big'], color: 'red,blue', 'filter[age]': '3', where: '{"a":[1]}' }
const trace = { headers: { 'x-trace': 't1' } }

/** As `fixtures` has it for the vendors of the catalogue. */
export const pets: Fixture = {
  config: { petKey: 'canary-pet-key-0123', second: 'canary-bearer-0123' },
  headers: {},
  refused: { status: 401, body: { error: 'the key canary-pet-key-0123 is not known' } },
  fault: { status: 422, body: { error: { detail: 'no such pet' } }, message: 'no such pet' },
  probe: { exchanges: [[get('/pets', key), ok({ data: [] })]], account: undefined },
  actions: {
    list_pets: {
      arguments: {
        limit: '2',
        tag: ['small', 'big'],
        color: ['red', 'blue'],
        filter: { age: 3 },
        where: { a: [1] },
        'X-Trace': 't1',
      },
      exchanges: [[{ ...get('/pets', list), ...trace }, ok({ data: [pet(1), pet(2)], next: 'p2' })]],
      result: { items: [pet(1), pet(2)], nextCursor: 'p2' },
      empty: { answer: ok({ data: [] }), result: { items: [] } },
      second: {
        exchanges: [[{ ...get('/pets', { ...list, page: 'p2' }), ...trace }, ok({ data: [pet(3)] })]],
        result: { items: [pet(3)] },
      },
    },
    createPet: write('POST', '/pets', {}, { name: 'Rex', parent: { name: 'Old', parent: { anything: true } } }),
    getPet: {
      arguments: { id: '7' },
      exchanges: [[get('/pets/7', key), ok(pet(7))]],
      result: pet(7),
      empty: { answer: ok({}), result: {} },
    },
    putPet: write('PUT', '/pets/8', { id: 8 }, { name: 'Tom' }, { 'content-type': 'application/merge-patch+json' }),
    deletePet: write('DELETE', '/pets/9', { id: 9 }, undefined, { authorization: 'Bearer canary-bearer-0123' }),
    search: write('POST', '/search', {}, { q: 'cats' }),
  },
}

function write(
  method: string,
  path: string,
  args: object,
  json?: object,
  headers?: Record<string, string>,
): ActionFixture {
  const expected = { method, path, query: key, ...(json && { json }), ...(headers && { headers }) }
  return {
    arguments: { ...args, ...(json && { body: json }) },
    exchanges: [[expected, ok({ done: true })]],
    result: { done: true },
    empty: { answer: { status: 204 }, result: {} },
  }
}
