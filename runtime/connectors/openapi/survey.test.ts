import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { petsChosen, petsDocument } from '../testing/pets.ts'
import { compile } from './compile.ts'
import { readDocument } from './document.ts'
import { type Survey, survey } from './survey.ts'

const whole = async (given: string | Record<string, unknown>) => {
  const found = await survey(given)
  if ('problem' in found) throw new Error(found.problem.message)
  return found satisfies Survey
}

const document = (paths: object, more: object = {}) => ({ openapi: '3.1.0', info: { title: 'T' }, paths, ...more })

describe('a survey of an OpenAPI document', () => {
  it('names every operation with what it does, what it needs and what a second call does', async () => {
    const { title, server, keys, operations } = await whole(petsDocument)
    expect([title, server]).toEqual(['Pets', 'https://eu.pets.example/v1'])
    expect(keys).toEqual([
      { name: 'petKey', secret: true },
      { name: 'second', secret: true },
    ])
    expect(operations.map(({ operationId, method, path, effect }) => [operationId, method, path, effect])).toEqual([
      ['pets/list', 'GET', '/pets', 'read'],
      ['createPet', 'POST', '/pets', 'once'],
      ['getPet', 'GET', '/pets/{id}', 'read'],
      ['putPet', 'PUT', '/pets/{id}', 'idempotent'],
      ['deletePet', 'DELETE', '/pets/{id}', 'idempotent'],
      ['search', 'POST', '/search', 'once'],
    ])
    expect(operations.find(({ operationId }) => operationId === 'deletePet')?.keys).toEqual(['petKey', 'second'])
    expect(operations.filter(({ problem }) => problem !== undefined)).toEqual([])
  })

  it('says the same of an operation as an install of it', async () => {
    const { operations } = await whole(petsDocument)
    const root = await readDocument(petsDocument)
    const made = compile(
      root,
      petsChosen.map(one => (typeof one === 'string' ? one : one.operationId)),
      undefined,
    )
    expect(operations.map(({ about, effect }) => ({ about, effect }))).toEqual(
      operations.map(({ operationId }) => {
        const { about, effect } = made.operations.find(({ name }) => name === operationId.replace('/', '_'))!
        return { about, effect }
      }),
    )
  })

  it('gives each action a name that an install takes, also where ids are long, strange or alike', async () => {
    const ids = fc.uniqueArray(
      fc.oneof(fc.string({ minLength: 1, maxLength: 60 }), fc.constantFrom('a b', 'a/b', 'a_b')),
      {
        minLength: 1,
      },
    )
    await fc.assert(
      fc.asyncProperty(ids, async given => {
        const paths = Object.fromEntries(given.map((operationId, n) => [`/p${n}`, { get: { operationId } }]))
        const { operations } = await whole(document(paths, { servers: [{ url: 'https://a.example' }] }))
        const chosen = operations.slice(0, 100).map(({ operationId, name }) => ({ operationId, name }))
        expect(operations.filter(({ problem }) => problem !== undefined)).toEqual([])
        const made = compile(await readDocument(document(paths)), chosen, undefined)
        expect(made.operations.map(({ name }) => name)).toEqual(chosen.map(({ name }) => name))
      }),
      { numRuns: 100 },
    )
  })

  it('puts what is wrong with one operation beside that one, and keeps the others', async () => {
    const cookie = { name: 'c', in: 'cookie', required: true, schema: { type: 'string' } }
    const { operations } = await whole(
      document({ '/a': { get: { operationId: 'a', parameters: [cookie] } }, '/b': { get: { operationId: 'b' } } }),
    )
    expect(operations).toMatchObject([
      { operationId: 'a', problem: expect.stringMatching(/^#\/paths\/~1a\/get\/parameters\/0/) },
      { operationId: 'b' },
    ])
    expect(operations[1]).not.toHaveProperty('problem')
  })

  it('says where a document is wrong that is none', async () => {
    expect(await survey('a: [')).toMatchObject({ problem: { place: '#', message: expect.stringMatching(/^line 1/) } })
    expect(await survey('swagger: "2.0"')).toMatchObject({ problem: { place: '#/swagger' } })
    expect(await survey(document({}))).toMatchObject({ problem: { place: '#/paths' } })
  })

  it('ends soon, however much references multiply', async () => {
    const part = (n: number) => ({ type: 'object', properties: { a: { $ref: `#/x/${n}` }, b: { $ref: `#/x/${n}` } } })
    const x = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [n, n === 29 ? {} : part(n + 1)]))
    const content = { 'application/json': { schema: { $ref: '#/x/0' } } }
    const paths = Object.fromEntries(
      Array.from({ length: 2000 }, (_, n) => [`/p${n}`, { post: { operationId: `o${n}`, requestBody: { content } } }]),
    )
    const before = performance.now()
    const { operations } = await whole(document(paths, { x }))
    expect(operations).toHaveLength(1000)
    expect(operations[0]?.problem).toMatch(/too large together/)
    expect(performance.now() - before).toBeLessThan(5000)
  })

  it('answers whatever it is given', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything(), fc.string(), async (value, name) => {
        const found = await survey({ openapi: '3.0.0', paths: { [`/${name}`]: { get: value } } } as never)
        expect('problem' in found || found.operations.length > 0).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})
