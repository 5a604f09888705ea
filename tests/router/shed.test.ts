import type { ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Agent } from 'undici'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { bodyHash } from '../../router/receipt/request-part.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type Script, type ScriptedUpstream, scriptedUpstream, silence } from '../upstream/scripted.ts'
import { routerChild } from './router-child.ts'
import { servedRouter } from './served-routers.ts'

it('sheds calls above max_concurrency with 503 and retry-after, and still answers for itself', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-shed-'))
  const upstream = await scriptedUpstream()
  upstream.always(silence)
  const config = join(folder, 'routing.toml')
  await writeFile(config, 'limits = { max_concurrency = 2 }\n')
  const router = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: ':memory:',
    ROUTER_CONFIG: config,
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_DRAIN_SECONDS: '0',
    RUST_LOG: 'off',
  })
  const abort = new AbortController()
  const call = () => fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{}', signal: abort.signal })
  const held = [call(), call()].map(one => one.catch((error: unknown) => error))
  await expect.poll(() => upstream.seen.length).toBe(2)

  const shed = await call()
  expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await shed.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  expect(shed.headers.get('x-router-trace-id')).toMatch(/^[0-9a-f-]{36}$/)
  expect((await fetch(`${router.origin}/healthz`)).status).toBe(200)
  const metrics = await (await fetch(`${router.origin}/metrics`)).text()
  expect(metrics).toContain('router_shed_total{reason="concurrency"} 1\n')
  expect(upstream.seen).toHaveLength(2)

  abort.abort()
  await Promise.all(held)
  await router.close()
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

describe('of several tenants', () => {
  const KEYS = { victim: 'v'.repeat(24), other: 'o'.repeat(24) }
  const CASES = {
    'takes all places': { limits: 'max_concurrency = 16', calls: 30, sent: 1 },
    'holds all bytes': { limits: 'max_body_bytes = 100000, max_held_bytes = 800000', calls: 12, sent: 99_000 },
  }
  it.each(Object.entries(CASES))('none %s with bodies that do not end', async (_, { limits, calls, sent }) => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-shed-'))
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('fine'))))
    const config = join(folder, 'routing.toml')
    await writeFile(
      config,
      `pricing = { unpriced = "null" }
limits = { ${limits} }
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
route = [{ match = {}, mode = "enforce", ladder = ["up/m"], gates = ["non-empty"] }]`,
    )
    const router = await serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: ':memory:',
      ROUTER_CONFIG: config,
      ROUTER_KEYS: Object.entries(KEYS)
        .map(one => one.join(':'))
        .join(),
      ROUTER_DRAIN_SECONDS: '0',
      RUST_LOG: 'off',
    })
    const answers: string[] = []
    const sockets = Array.from({ length: calls }, () => {
      const socket = connect(Number(new URL(router.origin).port), '127.0.0.1')
      socket.on('error', () => undefined).on('data', data => answers.push(String(data).slice(9, 12)))
      const head = ['POST /v1/messages HTTP/1.1', 'host: 127.0.0.1', `x-router-key: ${KEYS.other}`]
      socket.write([...head, 'content-length: 100000', '', ''].join('\r\n') + ' '.repeat(sent))
      return socket
    })
    await expect.poll(() => answers.length).toBeGreaterThan(0)
    const body = JSON.stringify({
      model: 'm',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'x'.repeat(50_000) }],
    })
    const headers = { 'content-type': 'application/json', 'x-router-key': KEYS.victim }
    const served = await fetch(`${router.origin}/v1/messages`, { method: 'POST', body, headers })
    expect([served.status, new Set(answers)]).toEqual([200, new Set(['503'])])

    for (const socket of sockets) socket.destroy()
    await router.close()
    await upstream.close()
    await rm(folder, { recursive: true, force: true })
  })
})

describe('bytes of requests', () => {
  const LIMITS = 'limits = { max_body_bytes = 100000, max_held_bytes = 150000 }'
  const SALT = 'a salt of twenty-four letters'
  const hashOf = (text: string) => bodyHash({ sha256: nativeSha256, salt: utf8(SALT) }, utf8(text))
  const PASSED = JSON.stringify(messagesAnswer('fine'))
  let upstream: ScriptedUpstream
  let abort: AbortController
  beforeEach(async () => {
    upstream = await scriptedUpstream()
    abort = new AbortController()
  })
  afterEach(async () => {
    abort.abort()
    await upstream.close()
  })

  const enforcing = () => `pricing = { unpriced = "null" }
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
route = [{ match = {}, mode = "enforce", ladder = ["up/m"], gates = ["non-empty"] }]
${LIMITS}`
  const request = (bytes: number) =>
    JSON.stringify({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x'.repeat(bytes - 80) }] })
  const post = (origin: string, body: BodyInit, headers: Record<string, string> = {}) =>
    fetch(`${origin}/v1/messages`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
      signal: abort.signal,
      ...(body instanceof ReadableStream && { duplex: 'half' }),
    } as RequestInit)
  const streamed = (text: string) => new Blob([text]).stream()

  describe.each([true, false])('where calls are routed (direct: %s)', direct => {
    it('one that has no room is a 503, and is served when another has ended', async () => {
      const router = await servedRouter({ config: enforcing(), direct })
      upstream.queue(silence)
      upstream.always(answer(200, PASSED))
      const held = post(router.origin, request(90_000)).catch((error: unknown) => error)
      await expect.poll(() => upstream.seen.length).toBe(1)

      const shed = await post(router.origin, request(90_000))
      expect([shed.status, shed.headers.get('retry-after')]).toEqual([503, '1'])
      expect(await shed.json()).toMatchObject({
        error: { type: 'overloaded_error', message: expect.stringMatching(/take up all the bytes/) },
      })
      // Neither does one whose length is said by its end, nor what grows as it is unpacked.
      expect((await post(router.origin, streamed(request(90_000)))).status).toBe(503)
      const small = gzipSync(request(90_000))
      expect((await post(router.origin, small, { 'content-encoding': 'gzip' })).status).toBe(503)
      expect((await post(router.origin, request(20_000))).status).toBe(200)
      const metrics = await (await fetch(`${router.origin}/metrics`)).text()
      expect(metrics).toContain('router_shed_total{reason="bytes"} 3\n')
      expect(upstream.seen).toHaveLength(2)

      abort.abort()
      await held
      abort = new AbortController()
      await expect.poll(async () => (await post(router.origin, request(90_000))).status).toBe(200)
      await router.stop()
    })
  })

  describe('answers that are read whole', () => {
    const large = JSON.stringify(messagesAnswer('y'.repeat(100_000)))
    const small = JSON.stringify(messagesAnswer('y'.repeat(60_000)))
    /** Most of a large answer, whose end does not come. */
    const unfinished: Script = response => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(large.slice(0, 100_000))
    }
    const outcome = async (answered: Response) => {
      const { headers, status } = answered
      return { status, again: headers.get('x-should-retry'), text: await answered.text() }
    }

    it('share the room: a large one that finds none is a 503, a small one is served, and no other rung is asked', async () => {
      const ladder = enforcing().replace('["up/m"]', '["up/m", "up/n"]')
      const router = await servedRouter({ config: ladder })
      upstream.queue(unfinished)
      const held = post(router.origin, request(100)).catch((error: unknown) => error)
      await expect.poll(() => upstream.seen.length).toBe(1)
      upstream.always(answer(200, large))
      await expect
        .poll(async () => outcome(await post(router.origin, request(100))))
        .toMatchObject({ status: 503, again: 'false', text: expect.stringMatching(/take up all the bytes/) })
      const metrics = await (await fetch(`${router.origin}/metrics`)).text()
      expect(metrics).toContain('router_shed_total{reason="bytes"} 1\n')
      const { length } = upstream.seen
      expect((await post(router.origin, request(100))).status).toBe(503)
      expect(upstream.seen).toHaveLength(length + 1)
      upstream.always(answer(200, small))
      expect(await outcome(await post(router.origin, request(100)))).toMatchObject({ status: 200, text: small })

      abort.abort()
      await held
      abort = new AbortController()
      upstream.always(answer(200, large))
      // It was the router's room that was full, so its provider is not rested.
      await expect.poll(async () => (await outcome(await post(router.origin, request(100)))).text).toBe(large)
      const { receipts } = await router.stop()
      const crowded = receipts.filter(({ final }) => final.status === 503)
      expect(crowded[0]!.attempts).toMatchObject([{ error_class: 'bad_response', usage_source: 'estimated' }])
    })

    it('keep their room until their client has them', async () => {
      const router = await servedRouter({
        config: enforcing().replace('100000', '20000000').replace('150000', '24000000'),
      })
      const huge = JSON.stringify(messagesAnswer('z'.repeat(16_000_000)))
      upstream.always(answer(200, huge))
      const slow = await post(router.origin, request(100))
      expect(slow.status).toBe(200)
      expect((await post(router.origin, request(100))).status).toBe(503)
      expect(await slow.text()).toBe(huge)
      await expect.poll(async () => (await outcome(await post(router.origin, request(100)))).status).toBe(200)
      await router.stop()
    })
  })

  it('one that is only observed is passed on, and its receipt has at least hash and size of its request', async () => {
    const env = { ROUTER_UPSTREAM_MESSAGES: upstream.origin }
    const router = await servedRouter({ config: LIMITS, env, promptSalt: SALT })
    upstream.always(answer(200, PASSED))
    const [slow, quick] = [request(90_000), request(90_001)]
    const gate = Promise.withResolvers<void>()
    const body = new ReadableStream<Uint8Array>({
      async start(out) {
        out.enqueue(utf8(slow.slice(0, 80_000)))
        await gate.promise
        out.enqueue(utf8(slow.slice(80_000)))
        out.close()
      },
    })
    const first = post(router.origin, body)
    await expect.poll(() => upstream.sockets()).toBe(1)
    expect((await post(router.origin, quick)).status).toBe(200)
    gate.resolve()
    expect((await first).status).toBe(200)
    expect(upstream.seen.map(({ body }) => body.toString())).toEqual([quick, slow])
    const { receipts } = await router.stop()
    expect(receipts.map(({ request }) => [request.api, request.features.requested_model])).toEqual([
      ['messages', ''],
      ['messages', 'm'],
    ])
    for (const [at, text] of [quick, slow].entries()) {
      const { body_sha256_in, features } = receipts[at]!.request
      expect([features.body_bytes, body_sha256_in]).toEqual([text.length, hashOf(text)])
    }
  })
})

it.runIf(process.platform === 'linux')('blames no provider where it may open no more files itself', async () => {
  const MOST = 90
  const folder = await mkdtemp(join(tmpdir(), 'waybill-shed-'))
  const upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(messagesAnswer('fine'))))
  const config = join(folder, 'routing.toml')
  await writeFile(
    config,
    `pricing = { unpriced = "null" }
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
route = [{ match = { model = "routed" }, mode = "enforce", ladder = ["up/m", "up/n"], gates = ["non-empty"] }]`,
  )
  const children: ChildProcess[] = []
  const idle: Socket[] = []
  const vars = { ROUTER_CONFIG: config, ROUTER_UPSTREAM_MESSAGES: upstream.origin, RUST_LOG: 'off' }
  const { child, origin } = await routerChild(':memory:', vars, children, MOST)
  const agent = new Agent({ connections: 2, headersTimeout: 10_000 })
  const post = async (model: string) => {
    const body = JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'hello' }] })
    const {
      statusCode,
      headers,
      body: said,
    } = await agent.request({ origin, path: '/v1/messages', method: 'POST', body })
    return { status: statusCode, after: headers['retry-after'], text: await said.text() }
  }
  const open = async () => (await readdir(`/proc/${child.pid}/fd`)).length
  try {
    // Two connections that stay, from which calls come when no other can be opened.
    await Promise.all(
      [0, 1].map(() => agent.request({ origin, path: '/healthz', method: 'GET' }).then(r => r.body.dump())),
    )
    for (let n = 0; n < MOST; n++) idle.push(connect(Number(new URL(origin).port), '127.0.0.1').on('error', () => {}))
    await expect.poll(open).toBeGreaterThanOrEqual(MOST - 1)
    for (const model of ['routed', 'passed']) {
      const { status, after, text } = await post(model)
      expect([status, after], text).toEqual([503, '1'])
      expect(text).toContain(
        'this router can open no more connections now (EMFILE): try again; if it lasts, raise its limit',
      )
    }
    expect(upstream.seen).toHaveLength(0)
    for (const socket of idle) socket.destroy()
    await expect.poll(open).toBeLessThan(MOST - 20)
    for (const model of ['routed', 'passed']) expect((await post(model)).status, model).toBe(200)
    const metrics = await (await fetch(`${origin}/metrics`)).text()
    expect(metrics).toContain('router_shed_total{reason="connections"} 2\n')
  } finally {
    for (const socket of idle) socket.destroy()
    child.kill('SIGKILL')
    await agent.destroy()
    await upstream.close()
    await rm(folder, { recursive: true, force: true })
  }
})
