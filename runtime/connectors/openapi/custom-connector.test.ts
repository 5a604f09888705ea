import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nodeEgress } from '../../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../../shared/http/outbound/outbound-rule.ts'
import { readArguments, schemaOf } from '../arguments.ts'
import { pets, petsChosen, petsDocument } from '../testing/pets.ts'
import { type ScriptedVendor, scriptedVendor } from '../testing/scripted-vendor.ts'
import { describeAction, describeProbe } from '../testing/seven-answers.ts'
import { compile } from './compile.ts'
import { customConnector } from './custom-connector.ts'
import { readDocument } from './document.ts'

const egress = nodeEgress({ rule: outboundRule([readAllowEntry('127.0.0.1')!]) })
let vendor: ScriptedVendor
beforeAll(async () => {
  vendor = await scriptedVendor()
})
afterAll(async () => {
  await egress.close()
  await vendor.close()
})

const api = compile(await readDocument(petsDocument), petsChosen, undefined)
// As it is after its way through the database.
const connector = customConnector('http-pets', JSON.parse(JSON.stringify(api)) as typeof api)
const given = { connector, fixture: pets, egress: () => egress, vendor: () => vendor }

for (const name of Object.keys(connector.actions)) describeAction(given, name)
describeProbe(given)

describe('a connector from a document', () => {
  it('has the effects of its methods, unless the install says otherwise', () => {
    const effects = Object.entries(connector.actions).map(([name, { effect }]) => [name, effect])
    expect(Object.fromEntries(effects)).toEqual({
      list_pets: 'read',
      getPet: 'read',
      createPet: 'once',
      putPet: 'idempotent',
      deletePet: 'idempotent',
      search: 'read',
    })
  })

  it('takes the first server with the defaults of its variables, and the keys of the schemes that are used', () => {
    expect(connector.origin({ method: 'token', values: {} })).toBe('https://eu.pets.example/v1')
    expect(connector.keys).toEqual([
      { name: 'petKey', secret: true },
      { name: 'second', secret: true },
    ])
  })

  it('describes its arguments in full, and lets a schema that comes back to itself end', () => {
    expect(schemaOf(connector.actions.createPet!)).toMatchObject({
      type: 'object',
      required: ['body'],
      properties: {
        body: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string', minLength: 1, description: 'Pattern: ^(a+)+$' }, parent: {} },
        },
      },
    })
    expect(schemaOf(connector.actions.list_pets!)).toMatchObject({
      properties: { limit: { type: 'integer', minimum: 1, maximum: 100 }, cursor: { type: 'string' } },
    })
  })

  it.each([
    ['list_pets', { limit: 101 }, 'limit'],
    ['list_pets', { limit: 1.5 }, 'limit'],
    ['list_pets', { filter: { age: 'old' } }, 'filter.age'],
    ['createPet', {}, 'body'],
    ['createPet', { body: {} }, 'body'],
    ['createPet', { body: { name: '' } }, 'body.name'],
    ['getPet', { id: 'x' }, 'id'],
    ['getPet', {}, 'id'],
  ])('names what does not fit in %s %j', (name, args, path) => {
    const failure = () => readArguments(connector.actions[name]!, args)
    expect(failure).toThrow(expect.objectContaining({ details: [expect.objectContaining({ path })] }))
  })
})
