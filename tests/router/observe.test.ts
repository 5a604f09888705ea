import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { createRouter } from '../../router/router.ts'
import { listen } from '../../shared/host/serve.ts'
import { chatAnswer, chatFrames, messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import {
  answer,
  reset,
  type ScriptedUpstream,
  scriptedUpstream,
  silence,
  steppedStream,
  stream,
} from '../upstream/scripted.ts'
import { servedRouter } from './served-routers.ts'

/** The Node host relays on sockets; the portable relay serves every other host. Both must behave alike. */
const HOSTS = {
  'the Node host': async (upstream: string) =>
    serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: ':memory:',
      ROUTER_UPSTREAM_MESSAGES: upstream,
      ROUTER_UPSTREAM_CHAT: `${upstream}/v1`,
      RUST_LOG: 'off',
    }),
  'the portable relay': async (upstream: string) => {
    const router = createRouter({ env: { ROUTER_UPSTREAM_MESSAGES: upstream, ROUTER_UPSTREAM_CHAT: `${upstream}/v1` } })
    const server = await listen({ bind: { host: '127.0.0.1', port: 0 }, fetch: router.fetch, bodyMs: 60_000 })
    return {
      origin: server.origin,
      async close() {
        await server.close(0)
        await router.close()
      },
    }
  },
}

describe.each(Object.entries(HOSTS))('observe on %s', (host, start) => {
  let upstream: ScriptedUpstream
  let router: { origin: string; close(): Promise<void> }
  beforeAll(async () => {
    upstream = await scriptedUpstream()
    router = await start(upstream.origin)
  })
  afterEach(() => {
    upstream.seen.length = 0
  })
  afterAll(async () => {
    await router?.close()
    await upstream?.close()
  })

  const post = (path: string, body: BodyInit, headers: Record<string, string> = {}) =>
    fetch(router.origin + path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })

  it('sends the very bytes, the query and the end-to-end headers, and consumes its own', async () => {
    upstream.queue(answer(200, '{}'))
    const body = '{ "model" : "auto",\t"x": 1.0e2, "x": "\\u00e9é", "big": 12345678901234567890 }'
    await post('/v1/messages?beta=true&a=%20b', body, {
      'x-api-key': 'client-key-1',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'one,two',
      'x-router-session': 's-1',
      'x-router-agent': 'tester',
      'user-agent': 'tester/1',
    })
    const [call] = upstream.seen
    expect([call!.method, call!.url, call!.body.toString()]).toEqual(['POST', '/v1/messages?beta=true&a=%20b', body])
    const sent = lowered(call!.rawHeaders)
    expect(sent).toMatchObject({
      'x-api-key': 'client-key-1',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'one,two',
      'user-agent': 'tester/1',
      host: new URL(upstream.origin).host,
    })
    expect(Object.keys(sent).filter(name => name.startsWith('x-router-'))).toEqual([])
  })

  it('does not repeat /v1 where the base address already ends in it', async () => {
    upstream.queue(answer(200, JSON.stringify(chatAnswer())))
    await post('/v1/chat/completions', '{"model":"m"}', { authorization: 'Bearer k' })
    expect(upstream.seen[0]!.url).toBe('/v1/chat/completions')
  })

  it('gives back status, headers and bytes as they came, and adds only its own headers', async () => {
    const body = JSON.stringify({ ...messagesAnswer(), odd: 1.0 }, null, 3)
    upstream.queue(
      answer(200, body, {
        'request-id': 'req_1',
        'anthropic-ratelimit-tokens-remaining': '5',
        'set-cookie': ['a=1', 'b=2'],
        'x-router-mode': 'forged',
        connection: 'keep-alive, x-hop',
        'x-hop': 'gone',
      }),
    )
    const got = await post('/v1/messages', '{"model":"m"}')
    expect(await got.text()).toBe(body)
    expect(got.headers.get('request-id')).toBe('req_1')
    expect(got.headers.get('anthropic-ratelimit-tokens-remaining')).toBe('5')
    expect(got.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(got.headers.get('x-hop')).toBeNull()
    expect(got.headers.get('x-router-mode')).toBe('observe')
    expect(got.headers.get('x-router-trace-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  it.each([
    [400, 'application/json', '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'],
    [401, 'application/json', '{"error":{"message":"bad key","code":"invalid_api_key"}}'],
    [429, 'application/json', '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'],
    [500, 'text/html', '<h1>sorry</h1>'],
    [529, 'application/json', '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'],
    [301, 'text/plain', 'moved'],
  ])('relays an upstream %i whole', async (status, type, body) => {
    upstream.queue(
      answer(status, body, { 'content-type': type, 'retry-after': '7', location: 'https://elsewhere.test/' }),
    )
    const got = await fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{}', redirect: 'manual' })
    expect([got.status, await got.text()]).toEqual([status, body])
    expect([got.headers.get('retry-after'), got.headers.get('content-type')]).toEqual(['7', type])
    expect(upstream.seen).toHaveLength(1)
  })

  it('asks a proxy in front to hold no stream back, unless the provider has said what it may do', async () => {
    const said = async (headers: Record<string, string>) => {
      upstream.queue(answer(200, 'data: 1\n\n', headers))
      return (await post('/v1/messages', '{"model":"m","stream":true}')).headers.get('x-accel-buffering')
    }
    expect(await said({ 'content-type': 'text/event-stream; charset=utf-8' })).toBe('no')
    expect(await said({ 'content-type': 'text/event-stream', 'X-Accel-Buffering': 'yes' })).toBe('yes')
    expect(await said({ 'content-type': 'application/json' })).toBeNull()
  })

  it('passes each chunk of a stream on while the upstream holds the rest', async () => {
    const steps = steppedStream()
    upstream.queue(steps.script)
    const got = await post('/v1/messages', '{"model":"m","stream":true}')
    const reader = got.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (const piece of messagesFrames(['a', 'b'])) {
      await steps.send(piece)
      let read = ''
      while (read.length < piece.length) read += (await reader.read()).value
      expect(read).toBe(piece)
    }
    await steps.end()
    expect((await reader.read()).done).toBe(true)
  })

  it('relays a compressed answer so that the client reads the same text', async () => {
    const body = JSON.stringify(messagesAnswer())
    upstream.queue(answer(200, gzipSync(body), { 'content-encoding': 'gzip' }))
    const got = await post('/v1/messages', '{"model":"m"}', { 'accept-encoding': 'gzip' })
    expect(await got.text()).toBe(body)
  })

  it.each([
    ['/v1/messages', { type: 'error', error: { type: 'api_error' } }],
    ['/v1/chat/completions', { error: { code: 'upstream_unreachable', type: 'server_error', param: null } }],
  ])('answers 502 in the dialect of %s when the upstream cuts the call', async (path, shape) => {
    upstream.queue(reset)
    const got = await post(path, '{"model":"m"}')
    expect(got.status).toBe(502)
    expect(await got.json()).toMatchObject(shape)
  })

  it('tears the connection down when the upstream cuts a stream, so that no client takes it for whole', async () => {
    const steps = steppedStream()
    upstream.queue(steps.script)
    const got = await post('/v1/messages', '{"stream":true}')
    await steps.send(messagesFrames([])[0]!)
    const reader = got.body!.getReader()
    await reader.read()
    await steps.reset()
    await expect(reader.read()).rejects.toThrow()
  })

  it('aborts the upstream when the client leaves: before the head, and in the middle of a stream', async () => {
    upstream.queue(silence)
    const early = new AbortController()
    const first = fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{}', signal: early.signal })
    await expect.poll(() => upstream.seen.length).toBe(1)
    early.abort()
    await expect(first).rejects.toThrow()
    await within(1000, upstream.seen[0]!.aborted)

    const steps = steppedStream()
    upstream.queue(steps.script)
    const late = new AbortController()
    const got = await fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{}', signal: late.signal })
    await steps.send('data: 1\n\n')
    await got.body!.getReader().read()
    late.abort()
    await within(1000, upstream.seen[1]!.aborted)
  })

  it('streams a large upload without waiting for its end, and refuses one that grows over the limit', async () => {
    upstream.queue(answer(200, '{}'))
    const big = Buffer.alloc(3_000_000, 'x')
    const got = await post('/v1/messages', big)
    expect(got.status).toBe(200)
    expect(upstream.seen[0]!.body.equals(big)).toBe(true)

    const endless = httpRequest(`${router.origin}/v1/messages`, { method: 'POST' })
    const refused = once(endless, 'response')
    const block = Buffer.alloc(1_000_000)
    endless.on('error', () => undefined)
    for (let i = 0; i < 40; i++) endless.write(block)
    endless.end()
    const [response] = (await refused) as [{ statusCode: number; resume(): void }]
    response.resume()
    expect(response.statusCode).toBe(413)
  })

  it('passes models, batches and embeddings through, and leaves other paths to themselves', async () => {
    upstream.always(answer(200, '{"data":[]}'))
    for (const path of ['/v1/models', '/v1/models/m-1', '/v1/messages/batches/b_1/results', '/v1/files/f_1/content']) {
      expect((await fetch(router.origin + path)).status, path).toBe(200)
    }
    expect((await post('/v1/embeddings', '{}')).status).toBe(200)
    expect((await post('/v1/unknown', '{}')).status).toBe(200)
    expect((await fetch(`${router.origin}/v1/messages`)).status).toBe(200)
    expect(upstream.seen).toHaveLength(7)
    expect((await post('/unknown', '{}')).status).toBe(404)
    expect((await post('/healthz', '{}')).status).toBe(405)
    expect(upstream.seen).toHaveLength(7)
  })

  it('serves a client that speaks in one-byte packets', async () => {
    const body = JSON.stringify(messagesAnswer())
    upstream.queue(answer(200, body))
    const socket = connect(Number(new URL(router.origin).port), '127.0.0.1')
    await once(socket, 'connect')
    const text =
      'POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 13\r\n\r\n{"model":"m"}'
    for (const byte of text) socket.write(byte)
    let got = ''
    for await (const chunk of socket) got += chunk
    expect(got).toContain('HTTP/1.1 200')
    expect(upstream.seen[0]!.body.toString()).toBe('{"model":"m"}')
  })

  it('serves the official SDKs with only their base address changed', async () => {
    const anthropic = new Anthropic({ baseURL: router.origin, apiKey: 'x', maxRetries: 0 })
    const openai = new OpenAI({ baseURL: `${router.origin}/v1`, apiKey: 'x', maxRetries: 0 })
    const ask = { model: 'm', max_tokens: 10, messages: [{ role: 'user' as const, content: 'hi' }] }

    upstream.queue(answer(200, JSON.stringify(messagesAnswer('one'))))
    expect(await anthropic.messages.create(ask)).toMatchObject(messagesAnswer('one'))
    upstream.queue(stream(messagesFrames(['t', 'wo'])))
    expect((await anthropic.messages.stream(ask).finalMessage()).content).toEqual([{ type: 'text', text: 'two' }])
    upstream.queue(answer(200, JSON.stringify(chatAnswer('three'))))
    expect((await openai.chat.completions.create(ask)).choices[0]!.message.content).toBe('three')
    upstream.queue(stream(chatFrames(['fo', 'ur'])))
    expect((await openai.chat.completions.stream(ask).finalChatCompletion()).choices[0]!.message.content).toBe('four')
    upstream.queue(answer(529, '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'))
    await expect(anthropic.messages.create(ask)).rejects.toMatchObject({ status: 529 })
    upstream.queue(answer(429, '{"error":{"message":"slow","type":"rate_limit_error","param":null,"code":null}}'))
    await expect(openai.chat.completions.create(ask)).rejects.toMatchObject({ status: 429 })
    void host
  })
})

it('a call that was sent and got no head has no known cost; one that was not sent, or is never billed, cost nothing', async () => {
  const upstream = await scriptedUpstream()
  upstream.always(silence)
  const env = { ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: 'http://127.0.0.1:1' }
  const router = await servedRouter({ env, timeouts: { connectMs: 1000, firstByteMs: 1000, idleMs: 1000 } })
  const post = (path: string, signal?: AbortSignal) =>
    fetch(router.origin + path, { method: 'POST', body: '{"model":"claude-opus-4-6"}', ...(signal && { signal }) })
  await post('/v1/messages')
  for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
    const leave = new AbortController()
    const call = post(path, leave.signal)
    const before = upstream.seen.length
    await expect.poll(() => upstream.seen.length).toBe(before + 1)
    leave.abort()
    await expect(call).rejects.toThrow()
    await upstream.seen.at(-1)!.aborted
  }
  await post('/v1/chat/completions')
  const { receipts } = await router.stop()
  await upstream.close()
  expect(receipts.map(({ attempts, final }) => [attempts[0]!.error_class, final.total_cost_usd])).toEqual([
    ['timeout', null],
    ['client_abort', null],
    ['client_abort', 0],
    ['transport', 0],
  ])
})

function lowered(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < raw.length; i += 2) headers[raw[i]!.toLowerCase()] = raw[i + 1]!
  return headers
}

async function within(ms: number, event: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${ms} ms`)), ms)
  })
  await Promise.race([event, late])
  clearTimeout(timer)
}
