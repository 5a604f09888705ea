import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { noContent, ok } from '../wire/answers.ts'
import { ApiError } from './api-error.ts'
import { mount, type Operation, operationIn } from './operation.ts'
import { type RequestIdEnv, requestId } from './request-id.ts'

const operation = operationIn<RequestIdEnv>()

const common = { tag: 'Things', summary: 'A thing', auth: 'none', errors: [] } as const
const thing = z.object({ name: z.string() })

function appOf(
  operations: readonly Operation<RequestIdEnv>[],
  before?: Parameters<typeof mount<RequestIdEnv, { maxBodyBytes: number }>>[3],
) {
  const app = new Hono<RequestIdEnv>().use(requestId()).onError((error, c) => {
    if (!(error instanceof ApiError)) throw error
    return c.json({ error: error.message }, error.code === 'payload_too_large' ? 413 : 400)
  })
  return mount(app, operations, { maxBodyBytes: 100 }, before)
}

const put = operation(
  {
    ...common,
    id: 'putThing',
    method: 'PUT',
    path: '/things/{name}',
    params: z.object({ name: z.string().max(5) }),
    query: z.object({ times: z.coerce.number().default(1) }),
    body: z.strictObject({ text: z.string() }),
    responses: ok(thing),
  },
  ({ params, query, body }) => ({ name: `${params.name} ${body.text.repeat(query.times)}` }),
)

describe('an operation that is mounted', () => {
  const app = appOf([
    put,
    operation(
      { ...common, id: 'getThing', method: 'GET', path: '/things/{name}', params: thing, responses: ok(thing) },
      ({ params }) => params,
    ),
    operation(
      {
        ...common,
        id: 'getBest',
        method: 'GET',
        path: '/things/best',
        responses: { ...ok(thing), 503: { description: 'no' } },
      },
      ({ context }) => context.json({ name: 'none' }, 503),
    ),
    operation(
      { ...common, id: 'removeThing', method: 'DELETE', path: '/things/{name}', params: thing, responses: noContent },
      () => undefined,
    ),
  ])
  const send = async (method: string, path: string, body?: string) => {
    const answer = await app.request(path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    })
    return [answer.status, await answer.text()]
  }

  it('gets its parameters, query and body by its schemas, and answers with its status', async () => {
    expect(await send('PUT', '/things/a?times=2', '{"text":"x"}')).toEqual([200, '{"name":"a xx"}'])
    expect(await send('PUT', '/things/a', '{"text":"x"}')).toEqual([200, '{"name":"a x"}'])
    expect(await send('DELETE', '/things/a')).toEqual([204, ''])
  })

  it.each([
    ['/things/toolong', '{"text":"x"}', 'name: expected at most 5 characters'],
    ['/things/a?times=x', '{"text":"x"}', 'times: expected a number'],
    ['/things/a', '{"txt":"x"}', 'unknown key: txt; did you mean text?'],
    ['/things/a', '', 'a body is required'],
    ['/things/a', '{', 'the body is not JSON'],
  ])('refuses %s with the body %s', async (path, body, error) => {
    const [status, text] = await send('PUT', path, body)
    expect([status, text]).toEqual([400, expect.stringContaining(error)])
  })

  it('refuses a body beyond the limit', async () => {
    expect((await send('PUT', '/things/a', JSON.stringify({ text: 'x'.repeat(100) })))[0]).toBe(413)
  })

  it('is found by its literal path before one with a parameter, in whatever order they came', async () => {
    expect(await send('GET', '/things/best')).toEqual([503, '{"name":"none"}'])
    expect(await send('GET', '/things/other')).toEqual([200, '{"name":"other"}'])
  })
})

it('lets the host decide before anything is read', async () => {
  const seen: string[] = []
  const app = appOf([put], ({ id }) => [
    async (c, next) => {
      seen.push(id)
      if (c.req.header('key') === undefined) return c.text('no key', 401)
      await next()
    },
  ])
  expect((await app.request('/things/toolong', { method: 'PUT', body: '{' })).status).toBe(401)
  expect(
    (
      await app.request('/things/toolong', {
        method: 'PUT',
        body: '{',
        headers: { key: 'k', 'content-type': 'application/json' },
      })
    ).status,
  ).toBe(400)
  expect(seen).toEqual(['putThing', 'putThing'])
})
