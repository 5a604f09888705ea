import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { undiciTransport } from '../../router/host/undici-transport.ts'
import { createRouter } from '../../router/router.ts'
import { verifyRecords } from '../../router/traces/verify.ts'
import { messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
let count = 0
beforeEach(async () => {
  upstream = await scriptedUpstream()
  count = 0
  upstream.always((response, seen, request) => {
    const streamed = JSON.parse(String(seen.body)).stream === true
    const text = seen.url.startsWith('/small') && String(seen.body).includes('hard') ? '' : `answer ${++count}`
    const script = streamed ? stream(messagesFrames([text])) : answer(200, JSON.stringify(messagesAnswer(text)))
    return script(response, seen, request)
  })
})
afterEach(async () => {
  await running?.close()
  running = undefined
  await upstream.close()
})

const start = async (route = 'cache_ttl_s = 60') => {
  running = await testRouter({
    config: `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
]
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty"]
${route}
`,
  })
  return running
}
const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const traceOf = (response: Response) => response.headers.get('x-router-trace-id')!
const feedback = ({ router }: TestRouter, trace: string, outcome: string) =>
  router.fetch(
    new Request('http://router/v1/feedback', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ request_id: trace, outcome }),
    }),
  )

describe('answers that passed their gates', () => {
  it('are given again byte for byte, for nothing, with a receipt that claims no savings', async () => {
    const running = await start()
    const first = await (await running.post('/v1/messages', ASK)).text()
    const again = await running.post('/v1/messages', ASK)
    expect(again.headers.get('x-router-cost-usd')).toBe('0')
    expect(await again.text()).toBe(first)
    expect(upstream.seen).toHaveLength(1)
    const receipts = await running.receipts()
    expect(receipts[1]).toMatchObject({
      attempts: [],
      request: { body_sha256_out: null },
      final: { served_from: 'cache', served_rung: 0, total_cost_usd: 0, baseline_same_token_usd: 0, savings_usd: 0 },
    })
    async function* lots() {
      yield receipts.map(record => ({ text: JSON.stringify(record) }))
    }
    expect((await verifyRecords({ records: lots() })).valid).toBe(true)
  })

  it('are streams where streams were asked for', async () => {
    const running = await start()
    const asked = { ...ASK, stream: true }
    const first = await (await running.post('/v1/messages', asked)).text()
    const again = await running.post('/v1/messages', asked)
    expect(again.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(await again.text()).toBe(first)
    expect(upstream.seen).toHaveLength(1)
  })

  it.each([
    ['another body', { ...ASK, max_tokens: 99 }, {}],
    ['another key', ASK, { authorization: 'Bearer other' }],
    ['another beta', ASK, { 'anthropic-beta': 'new' }],
    ['another beta of OpenAI', ASK, { 'openai-beta': 'new' }],
    ['another profile', ASK, { 'x-router-mode': 'cost' }],
    ['a client that wants none of it', ASK, { 'cache-control': 'no-cache' }],
  ])('are not given to %s', async (_, body, headers) => {
    const running = await start()
    await running.post('/v1/messages', ASK)
    await running.post('/v1/messages', body, headers)
    expect(upstream.seen).toHaveLength(2)
  })

  it('are taken back by negative feedback on any call that got them', async () => {
    const running = await start()
    await running.post('/v1/messages', ASK)
    const again = traceOf(await running.post('/v1/messages', ASK))
    expect((await feedback(running, again, 'correct')).status).toBe(202)
    await running.post('/v1/messages', ASK)
    expect(upstream.seen).toHaveLength(1)
    expect((await feedback(running, again, 'incorrect')).status).toBe(202)
    await running.post('/v1/messages', ASK)
    expect(upstream.seen).toHaveLength(2)
  })

  it('are taken back by feedback that another process on the store took', async () => {
    const running = await start()
    const first = traceOf(await running.post('/v1/messages', ASK))
    await running.post('/v1/messages', ASK)
    expect(upstream.seen).toHaveLength(1)
    const other = createRouter({ transport: undiciTransport({ connectMs: 1000 }), db: running.db })
    await other.ready()
    await expect.poll(async () => (await feedback({ ...running, router: other }, first, 'incorrect')).status).toBe(202)
    await expect
      .poll(
        async () => {
          await running.post('/v1/messages', ASK)
          return upstream.seen.length
        },
        { timeout: 5000 },
      )
      .toBe(2)
    await other.close()
  })

  it('are kept of the rung that passed, never of one that failed, and nothing is kept without being asked for', async () => {
    const hard = { ...ASK, messages: [{ role: 'user', content: 'hard' }] }
    const running = await start()
    expect((await running.post('/v1/messages', hard)).headers.get('x-router-served-rung')).toBe('1')
    const again = await running.post('/v1/messages', hard)
    expect(again.headers.get('x-router-served-rung')).toBe('1')
    expect(upstream.seen).toHaveLength(2)
    await running.close()
    const plain = await start('')
    await plain.post('/v1/messages', ASK)
    await plain.post('/v1/messages', ASK)
    expect(upstream.seen).toHaveLength(4)
  })
})
