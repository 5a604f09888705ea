import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer as createTcp } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { describe, expect, it, vi } from 'vitest'
import { commitResponse } from '../../router/enforce/commit-response.ts'
import { fetchCalls } from '../../router/proxy/fetch-exchange.ts'
import { sendAnswer } from '../../router/proxy/handle-call.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import { chatFrames, messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, reset, type ScriptedUpstream, type Seen, silence, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'
import { servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const FINE = answer(200, JSON.stringify(messagesAnswer('fine')))
const post = (origin: string, path: string, body: object = ASK, headers: Record<string, string> = {}) =>
  fetch(origin + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })

/** One ladder of the messages dialect; prices that make sums easy to read. */
const config = (ladder: readonly string[], providers: Record<string, string>, rest = '') => `
${rest}
price = [${ladder.map(model => `{ model = "${model}", input_per_mtok = 1, output_per_mtok = 5 }`).join(', ')}]
provider = [${Object.entries(providers)
  .map(([id, url]) => `{ id = "${id}", dialect = "${id.split('-')[0]}", base_url = "${url}" }`)
  .join(', ')}]
[[route]]
mode = "enforce"
ladder = [${ladder.map(model => `"${model}"`).join(', ')}]
gates = ["non-empty"]
`

const ADDRESSES: Record<string, () => Promise<{ url: string; close: () => void }>> = {
  'refuses connections': async () => {
    const server = createTcp().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    return { url: `http://127.0.0.1:${port}`, close: () => undefined }
  },
  'ends the handshake with a TLS alert': async () => {
    // Without a certificate no cipher fits, which the server says in an alert.
    const server = createTls({}).listen(0, '127.0.0.1')
    server.on('tlsClientError', () => undefined)
    await once(server, 'listening')
    return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() }
  },
  'has a name that nobody knows': async () => ({ url: 'https://no-such-host.invalid', close: () => undefined }),
}

describe.each(Object.entries(ADDRESSES))('an upstream that %s', (_, open) => {
  it.each(['observe', 'enforce'] as const)('is a 502 of the dialect in %s, with one receipt each', async mode => {
    const { url, close } = await open()
    const router = await servedRouter(
      mode === 'observe'
        ? { env: { ROUTER_UPSTREAM_MESSAGES: url, ROUTER_UPSTREAM_CHAT: url } }
        : { config: `${config(['messages-a/m'], { 'messages-a': url })}` },
    )
    const calls = [false, true].flatMap(stream =>
      ['/v1/messages', '/v1/chat/completions'].map(path => ({ path, stream })),
    )
    for (const { path, stream } of calls) {
      const got = await post(router.origin, path, { ...ASK, stream })
      expect([path, got.status]).toEqual([path, 502])
      const body = (await got.json()) as { type?: string; error: { type: string; code?: string } }
      if (path === '/v1/messages') expect(body).toMatchObject({ type: 'error', error: { type: 'api_error' } })
      else expect(body.error).toMatchObject({ type: 'server_error', code: 'upstream_unreachable', param: null })
    }
    const { receipts } = await router.stop()
    close()
    expect(
      receipts.map(({ attempts, final }) => [attempts.map(one => one.error_class), final.status, final.total_cost_usd]),
    ).toEqual(calls.map(() => [['transport'], 502, 0]))
  })
})

describe('a connection that is used again', () => {
  const start = async (mode: 'observe' | 'enforce') =>
    servedRouter(
      mode === 'observe'
        ? { env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } }
        : { config: config(['messages-a/m'], { 'messages-a': upstream.origin }) },
    )

  it.each(['observe', 'enforce'] as const)(
    'and cut then is a 502 in %s: the call may have been answered, so it is not made twice',
    async mode => {
      const ports: (number | undefined)[] = []
      upstream.always((response, seen, request) => {
        ports.push(request.socket.remotePort)
        return ports.length === 1 ? FINE(response, seen, request) : reset(response, seen, request)
      })
      const router = await start(mode)
      expect((await (await post(router.origin, '/v1/messages')).json()) as object).toMatchObject({ type: 'message' })
      expect((await post(router.origin, '/v1/messages')).status).toBe(502)
      expect(ports).toEqual([ports[0], ports[0]])
      expect((await router.stop()).receipts).toHaveLength(2)
    },
  )

  it.each(['observe', 'enforce'] as const)('and was closed while idle is replaced in %s', async mode => {
    upstream.always((response, seen, request) => {
      response.once('finish', () => request.socket.end())
      return FINE(response, seen, request)
    })
    const router = await start(mode)
    for (let i = 0; i < 3; i++) {
      expect((await post(router.origin, '/v1/messages')).status).toBe(200)
      await expect.poll(() => upstream.sockets()).toBe(0)
    }
    await router.stop()
  })
})

describe('under load', () => {
  /** The same numbers each time, evenly spread. */
  const dice = (seed: number) => () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
  const sound = (receipts: Awaited<ReturnType<Awaited<ReturnType<typeof servedRouter>>['stop']>>['receipts']) => {
    const chain = recordChainChecker()
    for (const receipt of receipts) {
      expect(chain.push(receipt)).toBeUndefined()
      const costs = receipt.attempts.map(({ cost }) => Math.round((cost ?? 0) * 1e9))
      if (receipt.final.total_cost_usd !== null)
        expect(Math.round(receipt.final.total_cost_usd * 1e9)).toBe(costs.reduce((sum, cost) => sum + cost, 0))
    }
  }

  it.each(['observe', 'enforce'] as const)(
    'of 200 calls at once with resets at random, %s loses no receipt and shortens no answer',
    async mode => {
      const roll = dice(7)
      const frames = messagesFrames(['one ', 'two ', 'three'])
      upstream.always((response, seen, request) => {
        const luck = seen.url.startsWith('/second') ? 1 : roll()
        if (luck < 0.2) return reset(response, seen, request)
        if (luck >= 0.5) return stream(frames)(response, seen, request)
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(frames.slice(0, 1 + Math.floor(luck * 10)).join(''), () =>
          setTimeout(() => response.destroy(), 5),
        )
      })
      const router = await servedRouter(
        mode === 'observe'
          ? { env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } }
          : {
              config: config(['messages-a/m', 'messages-b/m'], {
                'messages-a': upstream.origin,
                'messages-b': `${upstream.origin}/second`,
              }),
            },
      )
      const ends = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const got = await post(router.origin, '/v1/messages', { ...ASK, stream: true })
          if (got.status !== 200) return String(got.status)
          const text = await got.text().catch(() => 'cut')
          return text === 'cut' || text === frames.join('') ? text.slice(0, 3) : 'short'
        }),
      )
      const { receipts } = await router.stop()
      const count = (end: string) => ends.filter(one => one === end).length
      expect(count('short')).toBe(0)
      if (mode === 'enforce') expect(count('eve')).toBe(200)
      else expect([count('502'), count('cut'), count('eve')].every(times => times > 20)).toBe(true)
      expect(receipts).toHaveLength(200)
      sound(receipts)
      const cut = receipts.filter(({ final }) => final.truncated)
      expect(cut).toHaveLength(count('cut'))
    },
  )

  it('an upstream of which every other call fails is left alone, and every client is served', async () => {
    let calls = 0
    upstream.always((response, seen, request) => {
      const fails = !seen.url.startsWith('/second') && calls++ % 2 === 0
      return (fails ? answer(500, '{"error":{"message":"flap"}}') : FINE)(response, seen, request)
    })
    running = await testRouter({
      config: config(['messages-a/m', 'messages-b/m'], {
        'messages-a': upstream.origin,
        'messages-b': `${upstream.origin}/second`,
      }),
    })
    for (let i = 0; i < 60; i++) {
      // Each in a session of its own: a session would stay where its prompt is cached.
      const got = await running.post('/v1/messages', ASK, { 'x-router-session': String(i) })
      expect(got.status).toBe(200)
    }
    const receipts = await running.receipts()
    // The fifth failure is the ninth call.
    expect(calls).toBe(9)
    expect(receipts.filter(({ policy }) => policy.overrides.includes('breaker'))).toHaveLength(60 - calls)
    sound(receipts)
  })

  it('a key that has used up its share goes elsewhere, and other keys do not', async () => {
    const calls = new Map<string, number>()
    const keyOf = ({ rawHeaders }: Seen) =>
      rawHeaders[rawHeaders.findIndex(name => name.toLowerCase() === 'x-api-key') + 1] ?? ''
    upstream.always((response, seen, request) => {
      if (seen.url.startsWith('/second')) return FINE(response, seen, request)
      const key = keyOf(seen)
      calls.set(key, (calls.get(key) ?? 0) + 1)
      const limited = answer(429, '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}', {
        'retry-after': '60',
      })
      return (calls.get(key)! > 3 ? limited : FINE)(response, seen, request)
    })
    running = await testRouter({
      config: config(['anthropic/claude-haiku-4-5', 'messages-b/m'], { 'messages-b': `${upstream.origin}/second` }),
      env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    })
    const rungs = async (key: string, times: number) => {
      const list: (string | null)[] = []
      for (let i = 0; i < times; i++) {
        const got = await running!.post('/v1/messages', ASK, { 'x-api-key': key })
        list.push(got.headers.get('x-router-served-rung'))
      }
      return list.join('')
    }
    expect([await rungs('key-a', 6), await rungs('key-b', 3)]).toEqual(['000111', '000'])
    expect(Object.fromEntries(calls)).toEqual({ 'key-a': 4, 'key-b': 3 })
    const receipts = await running.receipts()
    expect(receipts.map(({ attempts }) => attempts.map(one => one.error_class ?? 'ok').join(' '))).toEqual([
      ...['ok', 'ok', 'ok', 'rate_limited ok', 'ok', 'ok', 'ok', 'ok', 'ok'],
    ])
  })
})

describe('a request that takes too long', () => {
  it('is a 504 of the dialect, and the receipt does not blame the client', async () => {
    upstream.always(silence)
    running = await testRouter({
      config: config(['messages-a/m'], { 'messages-a': upstream.origin }, 'limits = { total_ms = 200 }'),
    })
    const got = await running.post('/v1/messages', ASK)
    expect([got.status, await got.json()]).toMatchObject([504, { type: 'error', error: { type: 'timeout_error' } }])
    await upstream.seen[0]!.aborted
    expect(await running.receipts()).toMatchObject([
      { attempts: [{ verdict: 'error', error_class: 'timeout' }], final: { served_from: 'error', status: 504 } },
    ])
  })

  it('ends in an error event once its head is out, and the receipt says what the client got', async () => {
    upstream.always(silence)
    const rest = 'limits = { total_ms = 1300 }\nstream = { keepalive_after_ms = 1000 }'
    running = await testRouter({ config: config(['messages-a/m'], { 'messages-a': upstream.origin }, rest) })
    const got = await running.post('/v1/messages', { ...ASK, stream: true })
    expect(got.status).toBe(200)
    expect(await got.text()).toMatch(/^event: ping\n[\s\S]*event: error\ndata: [^\n]*timeout_error[^\n]*\n\n$/)
    expect(await running.receipts()).toMatchObject([
      { final: { served_from: 'error', served_rung: -1, status: 200, truncated: true } },
    ])
  })

  it('at one provider, by a limit of its own, goes on at the next', async () => {
    upstream.always((response, seen, request) =>
      (seen.url.startsWith('/second') ? FINE : silence)(response, seen, request),
    )
    const text = config(['messages-a/m', 'messages-b/m'], {
      'messages-a': upstream.origin,
      'messages-b': `${upstream.origin}/second`,
    })
    running = await testRouter({
      config: text.replace(`"${upstream.origin}" }`, `"${upstream.origin}", timeouts = { total_ms = 100 } }`),
    })
    expect((await running.post('/v1/messages', ASK)).headers.get('x-router-served-rung')).toBe('1')
    expect(await running.receipts()).toMatchObject([{ attempts: [{ error_class: 'timeout' }, { verdict: 'pass' }] }])
  })
})

describe('an answer that calls more tools than any model does', () => {
  const calling = (count: number) => {
    const call = (n: number) => ({ id: `c${n}`, type: 'function', function: { name: 'f', arguments: '{}' } })
    const message = { role: 'assistant', content: null, tool_calls: Array.from({ length: count }, (_, n) => call(n)) }
    const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
    const choices = [{ index: 0, finish_reason: 'tool_calls', message }]
    return answer(200, JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
  }

  it.each([true, false])('is none, and is paid for; stream: %s', async wantsStream => {
    running = await testRouter({ config: config(['chat-a/m'], { 'chat-a': upstream.origin }) })
    upstream.queue(calling(1000), calling(1001))
    for (const status of [200, 502]) {
      const got = await running.post('/v1/chat/completions', { ...ASK, stream: wantsStream })
      expect(got.status).toBe(status)
      await got.text()
    }
    const receipts = await running.receipts()
    expect(receipts.map(({ final }) => final.total_cost_usd)).toEqual([0.00011, 0.00011])
    expect(receipts[1]).toMatchObject({ attempts: [{ error_class: 'bad_response', usage_source: 'provider' }] })
  })
})

describe('what a stream that was cut has cost', () => {
  const text = 'x'.repeat(4000)

  it('is no less than the text that came, in observe', async () => {
    upstream.queue(response => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(messagesFrames([text]).slice(0, 3).join(''), () => setTimeout(() => response.destroy(), 20))
    })
    running = await testRouter({ env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
    const got = await running.post('/v1/messages', { ...ASK, stream: true })
    await expect(got.text()).rejects.toThrow()
    const [receipt] = await running.receipts()
    expect(receipt).toMatchObject({
      attempts: [{ usage_source: 'estimated', tokens: { uncached: 100, output: 1000 }, error_class: 'transport' }],
      final: { truncated: true },
    })
    // 100 at 1 USD, 1000 written for 5 minutes at 1.25, 2000 for an hour at 2, 10,000 read at 0.1, 1000 out at 5.
    expect(receipt!.final.total_cost_usd).toBe(0.01135)
  })

  it('is estimated in enforce when an error ends a stream that said nothing of usage', async () => {
    upstream.queue(stream([...chatFrames([text]).slice(0, 2), 'data: {"error":{"message":"busy","code":503}}\n\n']))
    running = await testRouter({ config: config(['chat-a/m'], { 'chat-a': upstream.origin }) })
    await running.post('/v1/chat/completions', { ...ASK, stream: true })
    expect(await running.receipts()).toMatchObject([
      {
        attempts: [{ usage_source: 'estimated', tokens: { uncached: sentTokens(), output: 1000 } }],
        final: { total_cost_usd: (5000 + sentTokens()) / 1e6 },
      },
    ])
  })

  it.each([
    ['whose client leaves at the first word', chatFrames([text]).slice(0, 2), 1000],
    ['whose client leaves before a word', [': hello\n\n'], 0],
    ['whose client leaves before an answer', undefined, 0],
  ])('is no less than what was sent, in enforce: a stream %s', async (_, frames, output) => {
    const open = Promise.withResolvers<void>()
    upstream.always((response, seen, request) => {
      if (frames === undefined) silence(response, seen, request)
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(frames.join(''))
      }
      setTimeout(open.resolve, 100)
    })
    running = await testRouter({ config: config(['chat-a/m'], { 'chat-a': upstream.origin }) })
    const leave = new AbortController()
    const body = { ...ASK, stream: true, user: 'x'.repeat(40_000) }
    const call = running.post('/v1/chat/completions', body, {}, leave.signal).then(got => got.text())
    await open.promise
    leave.abort()
    await call.catch(() => undefined)
    expect(sentTokens()).toBeGreaterThan(10_000)
    expect(await running.receipts()).toMatchObject([
      {
        attempts: [
          { usage_source: 'estimated', tokens: { uncached: sentTokens(), output }, error_class: 'client_abort' },
        ],
        final: { total_cost_usd: (output * 5 + sentTokens()) / 1e6 },
      },
    ])
  })

  it.each([
    ['is longer than an answer may be', 'limits = { max_response_bytes = 4000 }', answer(200, 'x'.repeat(5000))],
    ['does not come in time', 'limits = { total_ms = 200 }', silence],
  ])('is no less than what was sent, in enforce: an answer that %s', async (_, rest, says) => {
    upstream.always(says)
    running = await testRouter({ config: config(['chat-a/m'], { 'chat-a': upstream.origin }, rest) })
    await running.post('/v1/chat/completions', ASK)
    expect(await running.receipts()).toMatchObject([
      { attempts: [{ usage_source: 'estimated', tokens: { uncached: sentTokens(), output: 0 } }] },
    ])
  })

  /** Of the request as the upstream got it. */
  const sentTokens = () => Math.ceil((upstream.seen[0]?.body.length ?? 0) / 4)
})

describe('answers that a Response cannot carry as they are', () => {
  it.each([
    [304, 'observe', 304, ''],
    [999, 'observe', 502, 'odd'],
    [999, 'enforce', 502, 'odd'],
  ])('a status of %i reaches the client under %s as %i', async (sent, mode, got, text) => {
    upstream.always(answer(sent, text, { 'content-type': 'text/plain' }))
    running = await testRouter({
      config: config(['messages-a/m'], { 'messages-a': upstream.origin }),
      env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    })
    const response = await running.post('/v1/messages', ASK, { 'x-router-mode': mode })
    expect([response.status, await response.text()]).toEqual([got, text])
    expect(await running.receipts()).toHaveLength(1)
  })

  it('a decision that could not be made ends the stream, and its keep-alives with it', async () => {
    vi.useFakeTimers()
    try {
      const decision = Promise.withResolvers<never>()
      const answered = commitResponse(decision.promise, {
        dialect: 'messages',
        stream: true,
        traceId: 't',
        keepAlive: { afterMs: 1000, everyMs: 1000 },
        earlyHeaders: [],
        committed: () => undefined,
        gone: () => undefined,
      })
      const call = fetchCalls(exchange => {
        answered.then(one => sendAnswer(one, exchange)).catch((error: unknown) => exchange.cut(error))
        return 'taken'
      }, undefined)
      const response = call(new Request('http://router/v1/messages'))!
      await vi.advanceTimersByTimeAsync(2500)
      const reader = (await response).body!.getReader()
      expect(new TextDecoder().decode((await reader.read()).value)).toContain('ping')
      await reader.read()
      decision.reject(new Error('the store is gone'))
      await expect(reader.read()).rejects.toThrow('the store is gone')
      // A keep-alive on a stream that has failed would throw out of its timer.
      await vi.advanceTimersByTimeAsync(5000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})
