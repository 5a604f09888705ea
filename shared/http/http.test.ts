import { Hono } from 'hono'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { allowedMethods } from '../../router/errors.ts'
import { eventually } from '../../tests/eventually.ts'
import { ApiError } from './api-error.ts'
import { bindSchema, isLoopback, toOrigin } from './bind.ts'
import { announcedBodyLimit, readBody } from './body-limit.ts'
import { type SseEvent, sseResponse } from './sse-write.ts'
import { checked, jsonBody } from './validate.ts'

function refusing(app: Hono): Hono {
  app.onError((error, c) =>
    error instanceof ApiError
      ? c.json({ code: error.code, message: error.message, details: error.details ?? null }, 400)
      : c.text(String(error), 500),
  )
  return app
}

describe('jsonBody', () => {
  const schema = z.strictObject({ name: z.string() })
  const app = refusing(new Hono().post('/', jsonBody(schema, 100), c => c.json(c.req.valid('json'))))
  const post = (body: BodyInit, type?: string) =>
    app.request('/', { method: 'POST', body, headers: type === undefined ? {} : { 'content-type': type } })

  it('reads JSON under its own type, a +json type and no type at all', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'application/ld+json']) {
      expect(await (await post('{"name":"a"}', type)).json()).toEqual({ name: 'a' })
    }
    expect(await (await post(new TextEncoder().encode('{"name":"a"}'))).json()).toEqual({ name: 'a' })
  })

  it('refuses another type, broken JSON, bytes that are not UTF-8, and a body that is not there', async () => {
    expect(await (await post('name=a', 'application/x-www-form-urlencoded')).json()).toMatchObject({ code: 'bad_json' })
    expect(await (await post('{"name":', 'application/json')).json()).toMatchObject({
      code: 'bad_json',
      message: expect.stringMatching(/^the body is not JSON: /),
    })
    expect(await (await post(Uint8Array.of(0x22, 0xff, 0x22), 'application/json')).json()).toMatchObject({
      message: 'the body is not JSON: it is not UTF-8',
    })
    expect(await (await app.request('/', { method: 'POST' })).json()).toMatchObject({ message: 'a body is required' })
  })

  it('names each field that does not fit, unknown ones too', async () => {
    expect(await (await post('{"nam":1}', 'application/json')).json()).toEqual({
      code: 'validation_failed',
      message: 'unknown key: nam; did you mean name?',
      details: [
        { path: 'name', message: 'Required' },
        { path: 'nam', message: 'unknown key; did you mean name?' },
      ],
    })
  })

  it('stops reading a body without a length at the limit', async () => {
    let pulled = 0
    const endless = new ReadableStream({
      pull(stream) {
        pulled++
        stream.enqueue(new Uint8Array(64))
      },
    })
    const request = new Request('http://x/', { method: 'POST', body: endless, duplex: 'half' } as RequestInit)
    await expect(readBody(request, 1000)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(pulled).toBeLessThan(25)
  })
})

describe('checked parameters', () => {
  const app = refusing(
    new Hono().get(
      '/:id',
      checked('param', z.object({ id: z.string().max(3) })),
      checked('query', z.object({ limit: z.coerce.number().int().max(5) })),
      c => c.json({ ...c.req.valid('param'), ...c.req.valid('query') }),
    ),
  )

  it('gives the handler what it read, and names what it could not', async () => {
    expect(await (await app.request('/ab?limit=3')).json()).toEqual({ id: 'ab', limit: 3 })
    expect(await (await app.request('/ab?limit=9')).json()).toMatchObject({ details: [{ path: 'limit' }] })
    expect(await (await app.request('/abcd?limit=1')).json()).toMatchObject({ details: [{ path: 'id' }] })
  })
})

describe('announcedBodyLimit', () => {
  it('refuses by the length alone and closes the connection', async () => {
    const app = new Hono().use(announcedBodyLimit(10)).post('/', c => c.text('read'))
    app.onError((error, c) => c.text('no', 413, { ...(error as ApiError).headers }))
    const over = await app.request('/', { method: 'POST', headers: { 'content-length': '11' } })
    expect([over.status, over.headers.get('connection')]).toEqual([413, 'close'])
    expect((await app.request('/', { method: 'POST', headers: { 'content-length': '10' } })).status).toBe(200)
  })
})

describe('allowedMethods', () => {
  it('knows the methods of a path with parameters, and takes dots literally', () => {
    const methods = allowedMethods([
      { method: 'ALL', path: '/*' },
      { method: 'GET', path: '/v1/traces/:id' },
      { method: 'DELETE', path: '/v1/traces/:id' },
      { method: 'GET', path: '/openapi.json' },
    ])
    expect(methods('/v1/traces/7')).toEqual(['GET', 'HEAD', 'DELETE'])
    expect(methods('/v1/traces/7/8')).toEqual([])
    expect(methods('/openapixjson')).toEqual([])
  })
})

describe('bind addresses', () => {
  it('read host:port and [v6]:port, and print as an origin', () => {
    expect(bindSchema.parse('[::1]:80')).toEqual({ host: '::1', port: 80 })
    expect(toOrigin(bindSchema.parse('[::1]:80'))).toBe('http://[::1]:80')
    expect(toOrigin(bindSchema.parse('localhost:8080'))).toBe('http://localhost:8080')
    for (const bad of ['8080', 'a:b', ':80', 'host:70000', '::1:80'])
      expect(bindSchema.safeParse(bad).success).toBe(false)
  })

  it('know loopback from the rest', () => {
    expect(['localhost', '127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'].every(isLoopback)).toBe(true)
    expect(['0.0.0.0', '::', '10.0.0.1', '127.evil.com', 'localhost.evil.com'].some(isLoopback)).toBe(false)
  })
})

describe('sseResponse', () => {
  afterEach(() => vi.useRealTimers())
  const options = { heartbeatMs: 15_000 }

  it('writes events in order, with ids and a retry line first', async () => {
    async function* source(): AsyncIterable<SseEvent> {
      yield { event: 'a', data: { text: 'x\ny' }, id: 1 }
      yield { event: 'b', data: null }
    }
    const answer = sseResponse(source, { ...options, retryMs: 1500 })
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(await answer.text()).toBe(
      'retry: 1500\n\nid: 1\nevent: a\ndata: {"text":"x\\ny"}\n\nevent: b\ndata: null\n\n',
    )
  })

  it('tells a waiting source when the reader is gone, and leaves no timer', async () => {
    vi.useFakeTimers()
    let told = false
    async function* source(gone: AbortSignal): AsyncIterable<SseEvent> {
      yield { event: 'a', data: 1 }
      await new Promise<void>(resolve => gone.addEventListener('abort', () => resolve()))
      told = true
    }
    const reader = sseResponse(source, options).body!.getReader()
    await reader.read()
    await reader.cancel()
    await eventually(() => expect(told).toBe(true))
    expect(vi.getTimerCount()).toBe(0)
  })

  it('sends a heartbeat into silence', async () => {
    vi.useFakeTimers()
    async function* source(gone: AbortSignal): AsyncIterable<SseEvent> {
      await new Promise<void>(resolve => gone.addEventListener('abort', () => resolve()))
    }
    const reader = sseResponse(source, options).body!.getReader()
    const first = reader.read()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(new TextDecoder().decode((await first).value)).toBe(': heartbeat\n\n')
    await reader.cancel()
  })

  it('drops a reader that falls behind instead of filling memory', async () => {
    let produced = 0
    async function* source(): AsyncIterable<SseEvent> {
      for (;;) {
        produced++
        yield { event: 'a', data: 'x'.repeat(100) }
      }
    }
    vi.useFakeTimers()
    const reader = sseResponse(source, { ...options, maxBacklogBytes: 1000 }).body!.getReader()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(produced).toBe(0)
    await reader.read()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(produced).toBeGreaterThan(5)
    await expect(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    ).rejects.toThrow('fell too far behind')
    expect(produced).toBeLessThan(20)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for a reader that takes its time, and loses nothing', async () => {
    vi.useFakeTimers()
    async function* source(): AsyncIterable<SseEvent> {
      for (let id = 1; id <= 100; id++) yield { event: 'a', data: 'x'.repeat(100), id }
    }
    const reader = sseResponse(source, { ...options, maxBacklogBytes: 1000 }).body!.getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      text += new TextDecoder().decode(value)
      await vi.advanceTimersByTimeAsync(1000)
    }
    expect(text.match(/^id: /gm)).toHaveLength(100)
    expect(vi.getTimerCount()).toBe(0)
  })
})
