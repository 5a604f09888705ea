import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { parseKeys } from '../../router/auth/keys.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { chatAnswer, messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, reset, type Script, type ScriptedUpstream, silence, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const CONFIG = (ladder: string, more = '') => `
price = [
  { model = "small/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/claude-opus-4-6", input_per_mtok = 15, output_per_mtok = 75 },
  { model = "other/chatty", input_per_mtok = 3, output_per_mtok = 15 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
  { id = "other", dialect = "chat", base_url = "${upstream.origin}/other/v1", auth = "none" },
]
[learning]
algorithm = "thompson"
[[route]]
match = {}
mode = "enforce"
ladder = [${ladder}]
gates = ["non-empty"]
adapt = false
${more}
`
const TWO = '"small/claude-haiku-4-5", "large/claude-opus-4-6"'
const start = async (ladder = TWO, more = '') => {
  running = await testRouter({ config: CONFIG(ladder, more) })
  return running
}

/** As it is written: what adaptation makes of it stands in adapted-rungs.test.ts. What Claude Code asks of the model that its user chose. */
const ASK = {
  model: 'claude-opus-4-6',
  max_tokens: 32_000,
  thinking: { type: 'adaptive' },
  messages: [{ role: 'user', content: 'hi' }],
}
const error = (type: string, message: string) => JSON.stringify({ type: 'error', error: { type, message } })
const NO_ADAPTIVE = error('invalid_request_error', 'adaptive thinking is not supported on this model')
/** As much of an answer as comes before its connection breaks. */
const halved: Script = response => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
  response.write('{"id":', () => response.destroy())
}
const BEGUN = messagesFrames(['beg']).slice(0, 3)
/** A stream that an error ends. */
const overloaded = (...begun: string[]) =>
  stream([...begun, `event: error\ndata: ${error('overloaded_error', 'Overloaded')}\n\n`])
const full = answer(529, error('overloaded_error', 'Overloaded'), { 'x-should-retry': 'true' })
const good = (text = 'good') => answer(200, JSON.stringify(messagesAnswer(text, 'm')), { 'request-id': 'req_up' })
const text = async (response: Response) => ((await response.json()) as { content: { text: string }[] }).content[0]?.text

describe('a rung that refuses a request which was meant for another model', () => {
  it.each([
    [400, NO_ADAPTIVE],
    [404, error('not_found_error', 'model: claude-haiku-4-5')],
    [413, error('request_too_large', 'Request exceeds the maximum size')],
    [422, error('invalid_request_error', 'max_tokens: 32000 > 8192')],
  ])('with %i gives the next one the call, and is an attempt that cost nothing', async (status, body) => {
    const { post, receipts } = await start()
    upstream.queue(answer(status, body), good())
    const got = await post('/v1/messages', ASK)
    expect([got.status, await text(got), got.headers.get('x-router-served-rung')]).toEqual([200, 'good', '1'])
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/small/v1/messages', '/large/v1/messages'])
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({
      attempts: [
        { rung: 0, gate: 'error', verdict: 'error', error_class: 'upstream_4xx', status, cost: 0, cause: 'start' },
        { rung: 1, verdict: 'pass', cause: 'failover' },
      ],
      final: { served_rung: 1, served_from: 'attempt', escalations: 0, failovers: 1, status: 200 },
    })
    expect(receipt!.final.total_cost_usd).toBe(receipt!.attempts[1]!.cost)
  })

  it('is no failure of its provider, no lesson for its rung and no climb that a route counts', async () => {
    const { router, post } = await start(TWO, 'max_escalations = 0\nmax_attempts = 1')
    for (let n = 0; n < 12; n++) {
      upstream.queue(answer(400, NO_ADAPTIVE), good())
      // Each in a session of its own: a session would stay where its prompt is cached.
      expect((await post('/v1/messages', ASK, { 'x-router-session': String(n) })).status).toBe(200)
    }
    expect(upstream.seen).toHaveLength(24)
    const told = await router.fetch(new Request('http://router/v1/capabilities'))
    const { providers } = (await told.json()) as { providers: { id: string; breaker: string }[] }
    expect(providers.find(({ id }) => id === 'small')?.breaker).toBe('closed')
  })

  it('tells the client what the model said that it named, and else what the last one said', async () => {
    const own = error('invalid_request_error', 'messages: at least one message is required')
    const { post, receipts } = await start()
    upstream.queue(answer(400, NO_ADAPTIVE), answer(400, own, { 'request-id': 'req_own' }))
    const named = await post('/v1/messages', ASK)
    expect([named.status, await named.text(), named.headers.get('request-id')]).toEqual([400, own, 'req_own'])
    upstream.queue(answer(404, NO_ADAPTIVE), answer(400, own))
    const auto = await post('/v1/messages', { ...ASK, model: 'auto' })
    expect([auto.status, await auto.text()]).toEqual([400, own])
    expect(upstream.seen).toHaveLength(4)
    expect((await receipts()).map(({ final }) => final)).toMatchObject([
      { served_from: 'upstream_error', served_rung: -1, status: 400, total_cost_usd: 0 },
      { served_from: 'upstream_error', served_rung: -1, status: 400, total_cost_usd: 0 },
    ])
  })

  it('does not hide that the model which was named could not be reached', async () => {
    const { post } = await start()
    upstream.queue(answer(400, NO_ADAPTIVE), reset)
    const got = await post('/v1/messages', ASK)
    expect([got.status, got.headers.get('x-should-retry')]).toEqual([502, null])
  })

  it('is asked again below where the one above it refuses', async () => {
    const { post } = await start(TWO)
    upstream.queue(answer(400, NO_ADAPTIVE), good('from below'))
    const got = await post('/v1/messages', { ...ASK, model: 'small/claude-haiku-4-5' }, { 'x-router-mode': 'quality' })
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '0'])
  })

  it.each(['claude-haiku-4-5', 'small/claude-haiku-4-5', 'claude-haiku-4-5-20251001'])(
    'but named as %s keeps its word: the refusal passes as it came, and no other model is asked',
    async model => {
      const { post } = await start()
      upstream.queue(answer(400, NO_ADAPTIVE, { 'request-id': 'req_9' }))
      const got = await post('/v1/messages', { ...ASK, model })
      expect([got.status, await got.text(), got.headers.get('x-should-retry')]).toEqual([400, NO_ADAPTIVE, null])
      expect(upstream.seen).toHaveLength(1)
    },
  )
})

/** Tool arguments that are no JSON: the chat dialect says them, the messages dialect cannot. */
const brokenCall = () => {
  const whole = chatAnswer('', 'chatty')
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"oops": ' } }
  const choice = { ...whole.choices[0]!, message: { role: 'assistant', content: null, tool_calls: [call] } }
  return answer(200, JSON.stringify({ ...whole, choices: [{ ...choice, finish_reason: 'tool_calls' }] }))
}
const TOOL = { name: 'weather', input_schema: { type: 'object' as const, properties: {} } }

describe('an answer that the client has no words for', () => {
  it('is an attempt that failed, and the next rung is asked', async () => {
    const { post, receipts } = await start(FOREIGN)
    upstream.queue(brokenCall(), good())
    const { thinking: _, ...ask } = ASK
    const got = await post('/v1/messages', { ...ask, tools: [TOOL] })
    expect([got.status, await text(got)]).toEqual([200, 'good'])
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({
      attempts: [
        { rung: 0, verdict: 'error', error_class: 'untranslatable', gates: [] },
        { rung: 1, verdict: 'pass' },
      ],
      final: { served_rung: 1, served_from: 'attempt', escalations: 1 },
    })
    // It was answered, so it was paid.
    expect(receipt!.attempts[0]!.cost).toBeGreaterThan(0)
    expect(receipt!.final.total_cost_usd).toBeCloseTo(receipt!.attempts[0]!.cost! + receipt!.attempts[1]!.cost!, 9)
  })
})

const FOREIGN = '"other/chatty", "large/claude-opus-4-6"'
interface Paid {
  what: string
  scripts: readonly Script[]
  due: [status: number, header: string | null]
  ladder?: string
}

/** The official clients, with the repeats that they make unless they are asked not to. */
describe('what the router refuses is not sent again by', () => {
  const viaRouter = (router: TestRouter['router']): typeof fetch => {
    const sent = async (input: string | URL | Request, init?: RequestInit) => {
      requests += 1
      return router.fetch(new Request(input, init))
    }
    return sent as typeof fetch
  }
  let requests = 0
  beforeEach(() => {
    requests = 0
  })
  const anthropic = (router: TestRouter['router']) =>
    new Anthropic({ apiKey: 'k', baseURL: 'http://router', maxRetries: 4, fetch: viaRouter(router) })
  const openai = (router: TestRouter['router']) =>
    new OpenAI({ apiKey: 'k', baseURL: 'http://router/v1', maxRetries: 4, fetch: viaRouter(router) })
  const SAY = { max_tokens: 9, messages: [{ role: 'user' as const, content: 'hi' }] }

  it('@anthropic-ai/sdk where the only rung left answered what cannot be said', async () => {
    const { router } = await start('"other/chatty"')
    upstream.always(brokenCall())
    const call = anthropic(router).messages.create({ model: 'auto', ...SAY, tools: [TOOL] })
    await expect(call).rejects.toMatchObject({ status: 502 })
    expect([requests, upstream.seen.length]).toEqual([1, 1])
  })

  it.each([
    ['breaks its answer off', 1, halved],
    ['answers what is no JSON', 1, answer(200, '{"id":')],
    ['is gone before its answer, and may not have billed it', 5, reset],
  ])('either SDK where the provider %s, as often as it may be paid for', async (_, calls, script) => {
    const { router } = await start('"other/chatty"')
    upstream.always(script)
    const code = calls === 1 ? 'upstream_broke_off' : 'upstream_unreachable'
    await expect(openai(router).chat.completions.create({ model: 'auto', ...SAY })).rejects.toMatchObject({
      status: 502,
      code,
    })
    expect(requests).toBe(calls)
  })

  it('@anthropic-ai/sdk where an error ends what the provider had begun to say', async () => {
    const { router } = await start()
    upstream.always(overloaded(...BEGUN))
    const call = anthropic(router).messages.create({ model: 'auto', ...SAY, stream: true })
    await expect(call).rejects.toMatchObject({ status: 529, message: expect.stringContaining('Overloaded') })
    expect(requests).toBe(1)
  })

  it.each<Paid>([
    { what: 'an error ends what was begun', scripts: [overloaded(...BEGUN)], due: [529, 'false'] },
    { what: 'an error comes instead of an answer', scripts: [overloaded()], due: [529, null] },
    { what: 'an answer broke off and the next rung is full', scripts: [halved, full], due: [529, 'false'] },
    { what: 'every rung is full', scripts: [full, full], due: [529, 'true'] },
    {
      what: 'an answer cannot be said and the next rung is gone',
      scripts: [brokenCall(), reset],
      due: [502, 'false'],
      ladder: FOREIGN,
    },
    { what: 'every rung is gone', scripts: [reset, reset], due: [502, null] },
    { what: 'the time is over when one rung has answered', scripts: [good(''), silence], due: [504, 'false'] },
    { what: 'the time is over before a rung has answered', scripts: [silence], due: [504, null] },
  ])('any client that reads the header, if it was paid for: $what', async ({ scripts, due, ladder = TWO }) => {
    const { post } = await start(ladder, '[limits]\ntotal_ms = 1000')
    upstream.queue(...scripts)
    upstream.always(scripts.at(-1)!)
    const got = await post('/v1/messages', { model: 'auto', ...SAY, stream: true, tools: [TOOL] })
    expect([got.status, got.headers.get('x-should-retry')]).toEqual(due)
  })

  it('an answer that broke off where another rung has one', async () => {
    const { router } = await start()
    upstream.queue(halved, good())
    expect(await anthropic(router).messages.create({ model: 'auto', ...SAY })).toMatchObject({ role: 'assistant' })
    expect([requests, upstream.seen.length]).toEqual([1, 2])
  })

  it('openai where a budget is spent', async () => {
    const { router } = await start('"other/chatty"', '[route.budget]\nper_request_usd = 0.0000001')
    await expect(openai(router).chat.completions.create({ model: 'auto', ...SAY })).rejects.toMatchObject({
      status: 402,
    })
    expect([requests, upstream.seen.length]).toEqual([1, 0])
  })

  it('openai where no provider has a key', async () => {
    const config = `
provider = [{ id = "other", dialect = "chat", base_url = "${upstream.origin}/v1", auth = "env", api_key_env = "NOT_SET" }]
price = [{ model = "other/chatty", input_per_mtok = 3, output_per_mtok = 15 }]
[[route]]
match = {}
mode = "enforce"
ladder = ["other/chatty"]
gates = ["non-empty"]`
    running = await testRouter({ config })
    await expect(openai(running.router).chat.completions.create({ model: 'auto', ...SAY })).rejects.toMatchObject({
      status: 502,
    })
    expect(requests).toBe(1)
  })

  it.each([
    [
      '@anthropic-ai/sdk',
      (router: TestRouter['router']) => anthropic(router).messages.create({ model: 'auto', ...SAY }),
    ],
    ['openai', (router: TestRouter['router']) => openai(router).chat.completions.create({ model: 'auto', ...SAY })],
  ] as const)('%s where the router wants its own key', async (_, call) => {
    const keys = parseKeys(`acme:${'a'.repeat(32)}`, sha256)
    running = await testRouter({
      config: CONFIG(TWO),
      access: { keys, reach: 'network', insecure: false, metricsOpen: false },
    })
    await expect(call(running.router)).rejects.toMatchObject({ status: 401 })
    expect(requests).toBe(1)
  })

  it('@anthropic-ai/sdk where its key is refused: not the second time either, while the key rests', async () => {
    const config = `
price = [{ model = "own/m", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "own", dialect = "messages", base_url = "${upstream.origin}", auth = "passthrough" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["own/m"]
gates = ["non-empty"]`
    running = await testRouter({ config })
    upstream.always(answer(401, error('authentication_error', 'invalid x-api-key')))
    const call = () => anthropic(running!.router).messages.create({ model: 'auto', ...SAY })
    await expect(call()).rejects.toMatchObject({ status: 401 })
    await expect(call()).rejects.toMatchObject({ status: 401, message: expect.stringContaining('invalid x-api-key') })
    expect([requests, upstream.seen.length]).toEqual([2, 1])
    const [, rested] = await running.receipts()
    expect(rested).toMatchObject({
      attempts: [{ error_class: 'breaker_open', status: null }],
      final: { served_from: 'upstream_error', status: 401 },
    })
  })

  it('anybody for ever, but sent again where the upstreams of a route may be back the next time', async () => {
    const { router } = await start()
    upstream.always(reset)
    await expect(anthropic(router).messages.create({ model: 'auto', ...SAY })).rejects.toMatchObject({ status: 502 })
    expect(requests).toBe(5)
  })
})

describe('the answer to a client where rungs refuse for different reasons', () => {
  const limited = (after?: number) =>
    answer(429, error('rate_limit_error', `wait ${after}`), after === undefined ? {} : { 'retry-after': String(after) })
  const wrongKey = answer(401, error('authentication_error', 'invalid x-api-key'))
  const AUTO = { ...ASK, model: 'auto' }
  const told = async (got: Response) => [got.status, got.headers.get('retry-after')]

  it('is the wait that is over first, and not a key of the router that one of them refused', async () => {
    const { post } = await start()
    upstream.queue(limited(30), wrongKey)
    expect(await told(await post('/v1/messages', AUTO))).toEqual([429, '30'])
    const again = await start()
    upstream.queue(limited(30), limited(40))
    expect(await told(await again.post('/v1/messages', AUTO))).toEqual([429, '30'])
  })

  it('goes on being so while they rest, with the rest of the wait, and without a call', async () => {
    const { post } = await start()
    upstream.queue(wrongKey, limited(30))
    await post('/v1/messages', AUTO)
    const got = await post('/v1/messages', AUTO)
    expect(await told(got)).toEqual([429, expect.stringMatching(/^(?:29|30)$/)])
    expect(((await got.json()) as { error: { type: string } }).error.type).toBe('rate_limit_error')
    expect(upstream.seen).toHaveLength(2)
  })

  it('is the wait of one that only rests, where the other has just refused the key of the router', async () => {
    const { post } = await start()
    upstream.queue(limited(30), good())
    expect((await post('/v1/messages', AUTO)).status).toBe(200)
    upstream.queue(wrongKey)
    expect(await told(await post('/v1/messages', AUTO))).toEqual([429, expect.stringMatching(/^(?:29|30)$/)])
  })

  it('is the refusal of the key where all have refused it', async () => {
    const { post } = await start()
    upstream.queue(wrongKey, wrongKey)
    for (let n = 0; n < 2; n++) expect((await post('/v1/messages', AUTO)).status).toBe(401)
    expect(upstream.seen).toHaveLength(2)
  })

  it('hands a call on where the account of the router has no money left', async () => {
    const { post } = await start('"small/claude-haiku-4-5", "other/chatty"')
    upstream.queue(
      answer(402, error('billing_error', 'no credit')),
      answer(200, JSON.stringify(chatAnswer('good', 'm'))),
    )
    const { thinking: _, ...ask } = AUTO
    expect((await post('/v1/messages', ask)).status).toBe(200)
  })

  it('stands in the event that ends a stream which was kept open', async () => {
    const { post } = await start(TWO, '[stream]\nkeepalive_after_ms = 1000')
    const late = (script: ReturnType<typeof answer>): ReturnType<typeof answer> => {
      return async (response, seen, request) => {
        await new Promise(resolve => setTimeout(resolve, 700))
        return script(response, seen, request)
      }
    }
    upstream.queue(late(limited(30)), late(limited(30)))
    const got = await post('/v1/messages', { ...AUTO, stream: true })
    const said = await got.text()
    expect(said).toContain('event: ping')
    expect(said).toContain('"type":"rate_limit_error","message":"wait 30"')
  })
})
