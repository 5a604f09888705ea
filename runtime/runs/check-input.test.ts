import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Fixture, fixture } from '../auth/testing/fixture.ts'

let here: Fixture
beforeEach(async () => {
  here = await fixture({ embeddedNode: false })
})
afterEach(() => here.close())

const SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2 },
    guests: { type: 'object', properties: { 'a/b': { type: 'integer' } } },
  },
  required: ['city'],
  additionalProperties: false,
}
const publish = (name: string, inputSchema: unknown) =>
  here.call<{ details?: { path: string }[] }>('POST', '/v1/agents', {
    body: { name, manifest: { model: 'demo/echo', inputSchema } },
  })
const start = (input: unknown) =>
  here.call<Run & { details: { path: string }[] }>('POST', '/v1/runs', { body: { agentName: 'trip', input } })

it('refuses an input that does not fit, with its place, and stores nothing of it', async () => {
  await publish('trip', SCHEMA)
  for (const [input, path] of [
    [{}, 'input'],
    [{ city: 'x' }, 'input.city'],
    [{ city: 'Oslo', guests: { 'a/b': 1.5 } }, 'input.guests.a/b'],
    [{ city: 'Oslo', other: 1 }, 'input'],
  ] as const) {
    const { status, body } = await start(input)
    expect([status, body.details.map(one => one.path)], JSON.stringify(input)).toEqual([400, [path]])
  }
  expect((await here.call<Run[]>('GET', '/v1/runs')).body).toEqual([])
  expect((await start({ city: 'Oslo' })).status).toBe(201)
})

it('refuses a schema that cannot be used when it is published', async () => {
  for (const [schema, path] of [
    [{ type: 'string' }, 'manifest.inputSchema.type'],
    [{ type: 'object', properties: { a: { pattern: '(' } } }, 'manifest.inputSchema'],
  ] as const) {
    const { status, body } = await publish('never', schema)
    expect([status, body.details?.map(one => one.path)]).toEqual([400, [path]])
  }
})
