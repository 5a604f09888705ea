import { describe, expect, it } from 'vitest'
import type { FunctionGate } from '../../router/gates/gate-host.ts'
import type { RouterOptions } from '../../router/router.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import { traceRecord } from '../../shared/wire/router/trace.ts'
import { chatAnswer, chatFrames, messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, reset, type ScriptedUpstream, silence, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

/** Three rungs on one host: two of the messages dialect and one of chat; prices that make sums easy to read. */
const CONFIG = (origin: string, route = '', rest = '') => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
  { model = "other/chatty", input_per_mtok = 3, output_per_mtok = 15 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${origin}/large", auth = "none" },
  { id = "other", dialect = "chat", base_url = "${origin}/other/v1", auth = "none" },
]
${rest}
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty"]
${route}
`

const start = async (route = '', rest = '', options: Partial<RouterOptions> = {}) => {
  running = await testRouter({ config: CONFIG(upstream.origin, route, rest), ...options })
  return running
}

const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const json = (value: object) => answer(200, JSON.stringify(value), { 'request-id': 'req_up' })
const text = async (response: Response) => ((await response.json()) as { content: { text: string }[] }).content[0]?.text

describe('enforce', () => {
  it('serves the cheapest rung when its answer passes, with the bytes of the upstream and five headers', async () => {
    const { post, receipts } = await start()
    const bytes = JSON.stringify({ ...messagesAnswer('good', 'cheap'), extra: 1.5 }, null, 2)
    upstream.queue(answer(200, bytes, { 'request-id': 'req_1' }))
    const got = await post('/v1/messages', ASK, { 'x-request-id': 'mine' })
    expect(await got.text()).toBe(bytes)
    expect(Object.fromEntries([...got.headers].filter(([name]) => name.startsWith('x-router-')))).toEqual({
      'x-router-trace-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-router-mode': 'balanced',
      'x-router-served-rung': '0',
      'x-router-served-model': 'small/cheap',
      'x-router-cost-usd': '0.0066',
    })
    expect(upstream.seen.map(({ url, body }) => [url, JSON.parse(String(body)).model])).toEqual([
      ['/small/v1/messages', 'cheap'],
    ])
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({
      mode: 'enforce',
      route_ix: 0,
      policy: { id: 'static-ladder@1', start_rung: 0, propensity: 1 },
      attempts: [{ rung: 0, model: 'small/cheap', gate: 'pass', verdict: 'pass', cost: 0.0066, cause: 'start' }],
      final: { served_rung: 0, served_from: 'attempt', status: 200, total_cost_usd: 0.0066, response_id: 'msg_01' },
    })
    expect(receipt!.final.savings_usd).toBeCloseTo(receipt!.final.baseline_same_token_usd! - 0.0066, 9)
    expect(receipt!.final).toMatchObject({ client_request_id: 'mine', upstream_request_id: 'req_1' })
    expect(receipt!.request.body_sha256_in).not.toBe(receipt!.request.body_sha256_out)
  })

  it('climbs exactly one rung when a gate fails, and the chain of receipts holds', async () => {
    const { post, receipts } = await start()
    upstream.queue(json(messagesAnswer('')), json(messagesAnswer('better')), json(messagesAnswer('fine')))
    expect(await text(await post('/v1/messages', ASK))).toBe('better')
    expect(await text(await post('/v1/messages', ASK))).toBe('fine')
    const found = await receipts()
    expect(found[0]).toMatchObject({
      attempts: [
        { rung: 0, gate: 'fail', verdict: 'fail' },
        { rung: 1, gate: 'pass', verdict: 'pass', cause: 'escalation' },
      ],
      final: { served_rung: 1, escalations: 1, failovers: 0 },
    })
    const chain = recordChainChecker()
    for (const receipt of found) expect(chain.push(receipt)).toBeUndefined()
  })

  it.each([
    ['503', answer(503, '{"type":"error","error":{"type":"api_error","message":"down"}}'), 'upstream_5xx'],
    ['529', answer(529, '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'), 'overloaded'],
    ['429', answer(429, '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'), 'rate_limited'],
    ['a reset', reset, 'transport'],
    ['HTML with 200', answer(200, '<h1>hi</h1>', { 'content-type': 'text/html' }), 'bad_response'],
    ['a cut stream', stream(messagesFrames(['a']).slice(0, 3)), 'bad_response'],
  ])('fails over to another provider after %s', async (_, fault, errorClass) => {
    const { post, receipts } = await start()
    upstream.queue(fault, json(messagesAnswer('from the other')))
    expect(await text(await post('/v1/messages', ASK))).toBe('from the other')
    expect(await receipts()).toMatchObject([
      {
        attempts: [
          { rung: 0, verdict: 'error', error_class: errorClass },
          { rung: 1, verdict: 'pass', cause: 'failover' },
        ],
        final: { failovers: 1, escalations: 0, served_rung: 1 },
      },
    ])
  })

  it.each([
    ['pause_turn', {}],
    ['compaction', {}],
    // A limit of 0 fills the cache and asks for no answer.
    ['max_tokens', { max_tokens: 0 }],
  ])('serves what is no answer yet as it came, without a climb (%s)', async (stop_reason, asked) => {
    const { post, receipts } = await start()
    upstream.queue(json({ ...messagesAnswer(''), content: [], stop_reason }))
    const got = await post('/v1/messages', { ...ASK, ...asked })
    expect(await got.json()).toMatchObject({ content: [], stop_reason })
    expect(await receipts()).toMatchObject([{ attempts: [{ gates: [], verdict: 'pass' }], final: { status: 200 } }])
  })

  it('gates an answer that comes all the same where none was asked for', async () => {
    const { post, receipts } = await start()
    upstream.queue(json(messagesAnswer('Here it is.')))
    await (await post('/v1/messages', { ...ASK, max_tokens: 0 })).text()
    expect(await receipts()).toMatchObject([{ attempts: [{ gates: [{ gate_id: 'non-empty', verdict: 'pass' }] }] }])
  })

  it('fails over across dialects, and the client sees its own', async () => {
    running = await testRouter({ config: CONFIG(upstream.origin).replace('"large/best"]', '"other/chatty"]') })
    upstream.queue(reset, json(chatAnswer('translated', 'chatty')))
    const got = await running.post('/v1/messages', { ...ASK, system: 'be brief' })
    expect(await got.json()).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'translated' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 200, cache_read_input_tokens: 1000, output_tokens: 50 },
    })
    expect(JSON.parse(String(upstream.seen[1]!.body))).toMatchObject({
      model: 'chatty',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hi' },
      ],
    })
  })

  it.each([
    [400, '{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too big"}}'],
    [404, '{"type":"error","error":{"type":"not_found_error","message":"model: cheap"}}'],
  ])('returns a plain %i of the model that was asked for unchanged and calls no other rung', async (status, body) => {
    const { post, receipts } = await start()
    upstream.queue(answer(status, body, { 'request-id': 'req_9' }))
    const got = await post('/v1/messages', { ...ASK, model: 'small/cheap' })
    expect([got.status, await got.text(), got.headers.get('request-id')]).toEqual([status, body, 'req_9'])
    expect(upstream.seen).toHaveLength(1)
    expect(await receipts()).toMatchObject([{ final: { served_from: 'upstream_error', served_rung: -1, status } }])
  })

  it('gives an error that it translates for a messages client its id in the header too, as this dialect has it', async () => {
    const config = CONFIG(upstream.origin).replace('"small/cheap", "large/best"', '"other/chatty"')
    running = await testRouter({ config })
    const { post } = running
    upstream.queue(answer(400, JSON.stringify({ error: { message: 'no such tool', type: 'invalid_request_error' } })))
    const got = await post('/v1/messages', ASK)
    const { request_id } = (await got.json()) as { request_id: string }
    expect([got.status, got.headers.get('request-id')]).toEqual([400, request_id])
    const unread = await post('/v1/messages/other', ASK)
    expect(unread.headers.get('request-id')).toBe(((await unread.json()) as { request_id: string }).request_id)
  })

  it('passes on a refusal of any size up to the limit, and says the rest in the dialect', async () => {
    const { post } = await start('', 'limits = { max_response_bytes = 4000000 }')
    const long = JSON.stringify({ type: 'error', error: { type: 'x', message: 'm'.repeat(2_000_000) } })
    upstream.queue(
      answer(400, long),
      answer(404, 'x'.repeat(5_000_000), { 'content-type': 'text/plain', 'x-own': '1' }),
    )
    const named = { ...ASK, model: 'cheap' }
    const whole = await post('/v1/messages', named)
    expect([whole.status, (await whole.text()) === long]).toEqual([400, true])
    const brief = await post('/v1/messages', named)
    expect([brief.status, brief.headers.get('x-own')]).toEqual([404, '1'])
    expect(await brief.json()).toMatchObject({ type: 'error', error: { type: 'api_error' } })
    expect(upstream.seen).toHaveLength(2)
  })

  it.each([301, 304, 307, 308])('leads no client elsewhere by a redirect of %i', async status => {
    const { post, receipts } = await start()
    upstream.always(answer(status, '', { location: 'http://elsewhere.example/' }))
    const got = await post('/v1/messages', ASK)
    expect([got.status, got.headers.get('location')]).toEqual([502, null])
    expect((await receipts())[0]?.attempts).toMatchObject([{ error_class: 'bad_response' }, {}])
  })

  it('climbs when the request does not fit the model', async () => {
    const { post, receipts } = await start()
    const body =
      '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens"}}'
    upstream.queue(answer(400, body), json(messagesAnswer('fits')))
    expect(await text(await post('/v1/messages', ASK))).toBe('fits')
    expect(await receipts()).toMatchObject([
      { attempts: [{ error_class: 'context_overflow' }, { cause: 'overflow' }], final: { escalations: 1 } },
    ])
  })

  it('serves the best of answers that all failed: the highest score, at a tie the highest rung', async () => {
    const gate = '[[gate]]\nid = "score"\nkind = "function"\nname = "score"'
    const functions: Record<string, FunctionGate> = {
      score: ({ candidate }) => ({ verdict: 'fail', score: Number(candidate) }),
    }
    const config = CONFIG(upstream.origin, '', gate).replace('gates = ["non-empty"]', 'gates = ["score"]')
    running = await testRouter({ config, gates: { functions } })
    const { post } = running
    upstream.queue(json(messagesAnswer('0.6')), json(messagesAnswer('0.2')))
    const first = await post('/v1/messages', ASK)
    expect([await text(first), first.headers.get('x-router-served-rung')]).toEqual(['0.6', '0'])
    upstream.queue(json(messagesAnswer('0.5')), json(messagesAnswer('0.5')))
    const second = await post('/v1/messages', ASK)
    expect(second.headers.get('x-router-served-rung')).toBe('1')
  })

  it('answers 424 in the dialect when gates failed and the route serves nothing less', async () => {
    const { post, receipts } = await start('on_exhausted = "error"')
    upstream.queue(json(messagesAnswer('')), json(messagesAnswer('')))
    const got = await post('/v1/messages', ASK)
    expect([got.status, await got.json()]).toMatchObject([
      424,
      { type: 'error', error: { type: 'invalid_request_error' } },
    ])
    expect(await receipts()).toMatchObject([{ final: { served_from: 'error', status: 424 } }])
  })

  it('answers 402 before any call when the budget does not cover one, and never overruns it in parallel', async () => {
    const { router, post, receipts } = await start('budget = { per_tenant_day_usd = 0.02 }')
    upstream.always(json(messagesAnswer('ok')))
    // One call is bounded by 0.0005 + 100 tokens out; what it really costs is 0.0066.
    const answers = await Promise.all(Array.from({ length: 50 }, () => post('/v1/messages', ASK)))
    const late = await post('/v1/messages', ASK)
    expect(late.status).toBe(402)
    expect(await late.json()).toMatchObject({ type: 'error', error: { type: 'billing_error' } })
    expect(answers.some(({ status }) => status === 402)).toBe(true)
    const metrics = await (await router.fetch(new Request('http://router/metrics'))).text()
    const refused = 1 + answers.filter(({ status }) => status === 402).length
    expect(metrics).toContain(`router_budget_refusals_total{scope="route_tenant_day"} ${refused}\n`)
    expect((await receipts()).length).toBe(51)
  })

  it('counts a call that its client left before a word of the answer at its bound', async () => {
    const { post, receipts } = await start('budget = { per_tenant_day_usd = 0.002 }')
    upstream.always(silence)
    // Each is bounded by 0.0005 for its 100 tokens out, and less for what was sent.
    for (let n = 1; n <= 3; n++) {
      const abort = new AbortController()
      const call = post('/v1/messages', ASK, {}, abort.signal).catch((error: unknown) => error)
      await expect.poll(() => upstream.seen.length).toBe(n)
      abort.abort()
      await call
    }
    expect((await post('/v1/messages', ASK)).status).toBe(402)
    expect(upstream.seen).toHaveLength(3)
    // The record says what is known: what was sent.
    for (const { final } of (await receipts()).slice(0, 3)) expect(final.total_cost_usd).toBeLessThan(0.0001)
  })

  it.each([
    ['', '', 200],
    ['budget = { per_request_usd = 0.002, on_exhausted = "error" }', '', 402],
    ['budget = { per_request_usd = 0.002 }', '[budget]\non_exhausted = "error"', 402],
    ['on_exhausted = "error"\nbudget = { per_request_usd = 0.002, on_exhausted = "serve_best" }', '', 200],
  ])('ends as the budget says where a cap ends the climb: %j %j', async (route, rest, status) => {
    const { post } = await start(route || 'budget = { per_request_usd = 0.002 }', rest)
    upstream.queue(json(messagesAnswer('')))
    expect((await post('/v1/messages', ASK)).status).toBe(status)
    expect(upstream.seen).toHaveLength(1)
  })

  it('lowers the cap by header, and refuses one that is no amount', async () => {
    const { post } = await start()
    expect((await post('/v1/messages', ASK, { 'x-router-max-cost-usd': '0.0000001' })).status).toBe(402)
    for (const cap of ['lots', '', '0', '-1', '1e3']) {
      expect((await post('/v1/messages', ASK, { 'x-router-max-cost-usd': cap })).status, cap).toBe(400)
    }
    expect(upstream.seen).toHaveLength(0)
  })

  it('obeys the mode header: observe passes, quality opens on the strong rung, an unknown value is refused', async () => {
    const { post } = await start('', '', { env: { ROUTER_UPSTREAM_MESSAGES: `${upstream.origin}/plain` } })
    upstream.always(json(messagesAnswer('ok')))
    await post('/v1/messages', ASK, { 'x-router-mode': 'observe' })
    await post('/v1/messages', ASK, { 'x-router-mode': 'QUALITY' })
    const bad = await post('/v1/messages', ASK, { 'x-router-mode': 'fast' })
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/plain/v1/messages', '/large/v1/messages'])
    expect(String(upstream.seen[0]!.body)).toBe(JSON.stringify(ASK))
    expect([bad.status, ((await bad.json()) as { type: string }).type]).toEqual([400, 'error'])
    expect(upstream.seen.flatMap(({ rawHeaders }) => rawHeaders).filter(name => /^x-router/i.test(name))).toEqual([])
  })

  it('refuses what it cannot read, and calls nobody', async () => {
    const { post } = await start()
    for (const body of ['{"model":', '[]', '{"messages":[]}', '{"model":5}', '']) {
      const got = await post('/v1/messages', body)
      expect(got.status, body).toBe(400)
      const id = got.headers.get('x-router-trace-id')
      expect(id).toMatch(/^[0-9a-f-]{36}$/)
      expect(await got.json()).toMatchObject({ type: 'error', request_id: id })
    }
    for (const n of [9, '2', '50'])
      expect((await post('/v1/chat/completions', { ...ASK, n })).status, `n ${n}`).toBe(400)
    expect(upstream.seen).toHaveLength(0)
  })

  it('never lets a client key reach a provider that is not its own', async () => {
    const { post } = await start()
    upstream.queue(json(messagesAnswer('ok')))
    await post('/v1/messages', ASK, {
      'x-api-key': 'sk-ant-canary',
      authorization: 'Bearer canary',
      cookie: 'a=canary',
    })
    expect(JSON.stringify(upstream.seen[0]!.rawHeaders)).not.toContain('canary')
  })

  it('says how long a key rests that its provider refused, while no other can be asked', async () => {
    const { post, receipts } = await start('max_attempts = 1', 'limits = { max_retry_wait_s = 1 }')
    const limited = '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'
    upstream.always(answer(429, limited, { 'retry-after': '30' }))
    expect((await post('/v1/messages', ASK)).status).toBe(429)
    expect((await post('/v1/messages', ASK)).status).toBe(429)
    const got = await post('/v1/messages', ASK)
    expect(got.status).toBe(429)
    expect(Number(got.headers.get('retry-after'))).toBeGreaterThan(25)
    expect(Number(got.headers.get('retry-after'))).toBeLessThanOrEqual(30)
    expect(await got.text()).toContain('is asked again in')
    expect((await receipts()).at(-1)?.attempts).toMatchObject([{ error_class: 'breaker_open' }])
  })

  it('opens the breaker of a failing provider and starts elsewhere', async () => {
    const { post, receipts } = await start()
    upstream.always((response, seen, request) =>
      seen.url.startsWith('/small')
        ? reset(response, seen, request)
        : json(messagesAnswer('ok'))(response, seen, request),
    )
    for (let i = 0; i < 8; i++) expect((await post('/v1/messages', ASK)).status).toBe(200)
    expect(upstream.seen.filter(({ url }) => url.startsWith('/small'))).toHaveLength(5)
    expect((await receipts()).at(-1)).toMatchObject({ policy: { overrides: ['breaker'], start_rung: 1 } })
  })

  it('aborts the upstream within a second when the client leaves, and records it', async () => {
    const { post, receipts } = await start()
    upstream.queue(silence)
    const abort = new AbortController()
    const call = post('/v1/messages', ASK, {}, abort.signal).catch((error: unknown) => error)
    await expect.poll(() => upstream.seen.length).toBe(1)
    abort.abort()
    await upstream.seen[0]!.aborted
    await call
    expect(upstream.seen).toHaveLength(1)
    expect(await receipts()).toMatchObject([
      {
        attempts: [{ verdict: 'cancelled', error_class: 'client_abort' }],
        final: { served_from: 'aborted', status: 499 },
      },
    ])
  })
})

describe('streams in enforce', () => {
  const ask = { ...ASK, stream: true }

  it('replays the recorded frames byte for byte, without pings', async () => {
    const { post } = await start()
    const frames = messagesFrames(['one ', 'two'])
    upstream.queue(stream(['event: ping\ndata: {"type":"ping"}\n\n', ...frames]))
    const got = await post('/v1/messages', ask)
    expect(got.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(await got.text()).toBe(frames.join(''))
  })

  it('gates the whole stream before a byte goes out', async () => {
    const { post } = await start()
    upstream.queue(stream(messagesFrames([])), stream(messagesFrames(['better'])))
    expect(await (await post('/v1/messages', ask)).text()).toBe(messagesFrames(['better']).join(''))
  })

  it('answers an HTTP error when it fails before the head went out', async () => {
    const { post } = await start()
    upstream.queue(reset, reset)
    expect((await post('/v1/messages', ask)).status).toBe(502)
  })

  it('sends keep-alives while it waits, then the frames', async () => {
    const { post } = await start('', 'stream = { keepalive_after_ms = 1000, keepalive_every_ms = 1000 }')
    upstream.queue(response => {
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(messagesFrames(['late']).join(''))
      }, 1500)
    })
    const got = await post('/v1/messages', ask)
    expect(got.status).toBe(200)
    expect(await got.text()).toBe(`event: ping\ndata: {"type":"ping"}\n\n${messagesFrames(['late']).join('')}`)
  })

  it.each([
    ['overloaded_error', 'Overloaded', 529, 2],
    ['rate_limit_error', 'slow down', 429, 2],
    ['invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum', 400, 2],
    ['api_error', 'no word', 502, 2],
  ])('refuses with the status of an error that came in a stream: %s', async (type, message, status, calls) => {
    const { post, receipts } = await start()
    const error = `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message } })}\n\n`
    upstream.always(stream([...messagesFrames(['beg']).slice(0, 3), error]))
    const got = await post('/v1/messages', { ...ASK, stream: true })
    expect(got.status).toBe(status)
    expect(await got.json()).toMatchObject({ type: 'error', error: { type, message } })
    expect(upstream.seen).toHaveLength(calls)
    expect((await receipts()).at(-1)?.attempts.map(one => one.status)).toEqual(
      Array.from({ length: calls }, () => status),
    )
  })

  it('ends a stream whose head is out with an error event and nothing that reads as an end', async () => {
    const { post } = await start('', 'stream = { keepalive_after_ms = 1000 }')
    upstream.queue(response => void setTimeout(() => response.destroy(), 1300), reset)
    const body = await (await post('/v1/messages', ask)).text()
    expect(body).toMatch(/^event: ping\n[\s\S]*event: error\ndata: \{"type":"error"/)
    expect(body).not.toContain('message_stop')
  })

  it('gives a chat client a stream made from another dialect', async () => {
    running = await testRouter({ config: CONFIG(upstream.origin).replace('"large/best"]', '"other/chatty"]') })
    upstream.queue(stream(messagesFrames(['one ', 'two'])))
    const body = await (await running.post('/v1/chat/completions', ask)).text()
    expect(body).toContain('"content":"one two"')
    expect(body.endsWith('data: [DONE]\n\n')).toBe(true)
    upstream.queue(reset, stream(chatFrames(['same'])))
    expect(await (await running.post('/v1/chat/completions', ask)).text()).toBe(chatFrames(['same']).join(''))
  })
})

it('records an observed call whatever number its body names', async () => {
  const { post, receipts } = await start('', '', { env: { ROUTER_UPSTREAM_CHAT: `${upstream.origin}/v1` } })
  upstream.always(json(chatAnswer('ok')))
  const numbers = ['"n":1e999,"n":1', '"n":1.5', '"n":-1e999', '"n":1e300', '"max_tokens":1e300']
  for (const one of numbers) {
    await post('/v1/chat/completions', `{"model":"x","messages":[],${one}}`, { 'x-router-mode': 'observe' })
  }
  const kept = await receipts()
  expect(kept).toHaveLength(numbers.length)
  for (const record of kept) expect(traceRecord.safeParse(record).error).toBeUndefined()
})

it('counts what gates say that they cost', async () => {
  const gate = 'gate = [{ id = "paid", kind = "length", max_chars = 1000, cost_usd = 0.015 }]'
  const route = 'budget = { per_day_usd = 0.02 }'
  running = await testRouter({ config: CONFIG(upstream.origin, route, gate).replace('["non-empty"]', '["paid"]') })
  upstream.always(json(messagesAnswer('good', 'cheap')))
  const status = async () => (await running!.post('/v1/messages', ASK)).status
  // The call 0.0066 USD, the gate 0.015.
  expect([await status(), await status()]).toEqual([200, 402])
})

it('estimates an answer whose provider counts no token at all', async () => {
  const { post, receipts } = await start()
  upstream.queue(json({ ...messagesAnswer('x'.repeat(400)), usage: { input_tokens: 0, output_tokens: 0 } }))
  await (await post('/v1/messages', ASK)).text()
  const [receipt] = await receipts()
  expect(receipt!.attempts[0]).toMatchObject({ usage_source: 'estimated', tokens: { output: 100 } })
  expect(receipt!.final.total_cost_usd).toBeGreaterThan(0.0005)
})

it('counts the last usage of a stream that counts anything', async () => {
  const { post, receipts } = await start('', '', {
    config: CONFIG(upstream.origin).replace('["small/cheap", "large/best"]', '["other/chatty"]'),
  })
  const usage = (prompt_tokens: number, completion_tokens: number) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'chatty', choices: [], usage: { prompt_tokens, completion_tokens } })}\n\n`
  const frames = chatFrames(['good'])
  upstream.queue(stream([...frames.slice(0, -1), usage(1000, 500), usage(0, 0), ...frames.slice(-1)]))
  await (await post('/v1/chat/completions', { ...ASK, stream: true })).text()
  expect((await receipts())[0]!.attempts[0]!.tokens).toMatchObject({ uncached: 1000, output: 500 })
})

it('counts what an answer says that it used, where it is of no use', async () => {
  const { post, receipts } = await start('max_attempts = 1\nbudget = { per_day_usd = 0.02 }')
  const { content: _, ...nothing } = messagesAnswer()
  const usage = { input_tokens: 1000, output_tokens: 100 }
  const status = async (value: object) => {
    upstream.queue(json(value))
    return (await post('/v1/messages', ASK)).status
  }
  expect(await status({ ...nothing, usage })).toBe(502)
  expect(await status({ ...messagesAnswer('x'), stop_reason: null, usage })).toBe(502)
  expect((await receipts()).map(({ final }) => final.total_cost_usd)).toEqual([0.0015, 0.0015])
})
