import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { traceContext } from '../../router/telemetry/call-tracing.ts'
import { collector } from '../collector.ts'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

let upstream: ScriptedUpstream
let spans: Awaited<ReturnType<typeof collector>>
let folder: string
const open: { origin: string; close(): Promise<void> }[] = []
beforeEach(async () => {
  upstream = await scriptedUpstream()
  spans = await collector()
  folder = await mkdtemp(join(tmpdir(), 'waybill-tracing-'))
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  await upstream.close()
  await spans.close()
  await rm(folder, { recursive: true, force: true })
})

const CANARY = 'prompt-canary-31c9'
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const ASK = { model: 'claude-haiku-4-5', max_tokens: 50, messages: [{ role: 'user', content: CANARY }] }
const config = () => `
price = [
  { model = "far/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "far/large", input_per_mtok = 3, output_per_mtok = 15 },
]
provider = [{ id = "far", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = { api = "messages" }
mode = "enforce"
ladder = ["far/small", "far/large"]
gates = ["non-empty"]
`

/** The program as an operator starts it, with its thread for receipts. */
async function serve(vars: Record<string, string> = { OTEL_EXPORTER_OTLP_ENDPOINT: spans.endpoint }) {
  const file = join(folder, 'routing.toml')
  await writeFile(file, config())
  const router = await serveRouter({
    ROUTER_DB: join(folder, 'router.db'),
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_CONFIG: file,
    ROUTER_UPSTREAM_CHAT: upstream.origin,
    ROUTER_LOG: 'off',
    ...vars,
  })
  open.push(router)
  return (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(router.origin + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', 'x-router-session': 's-1', ...headers },
    })
}

describe('traces of calls', () => {
  it('show a climb under the span of the client, with its gates, and no word of what was said', async () => {
    const post = await serve()
    upstream.queue(
      answer(200, JSON.stringify(messagesAnswer(''))),
      answer(200, JSON.stringify(messagesAnswer(`answer ${CANARY}`))),
    )
    const got = await post('/v1/messages', ASK, { traceparent: PARENT, tracestate: 'vendor=1' })
    await got.text()
    await spans.until(() => spans.spans.length >= 3)
    const [call, ...attempts] = spans.spans
    expect(call).toMatchObject({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentSpanId: 'b7ad6b7169203331',
      name: 'POST /v1/messages',
      kind: 2,
      code: 0,
      of: {
        'http.request.method': 'POST',
        'url.path': '/v1/messages',
        'http.response.status_code': 200,
        'gen_ai.conversation.id': 's-1',
        'waybill.trace.id': got.headers.get('x-router-trace-id'),
        'waybill.router.mode': 'enforce',
        'waybill.router.served_from': 'attempt',
      },
    })
    expect(attempts).toMatchObject([
      {
        traceId: call!.traceId,
        parentSpanId: call!.spanId,
        name: 'chat small',
        kind: 3,
        of: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': 'far',
          'gen_ai.request.model': 'small',
          'gen_ai.request.max_tokens': 50,
          'gen_ai.usage.input_tokens': 13_100,
          'gen_ai.usage.output_tokens': 50,
          'gen_ai.usage.cache_read.input_tokens': 10_000,
          'gen_ai.usage.cache_creation.input_tokens': 3000,
          'gen_ai.response.finish_reasons': ['end_turn'],
          'waybill.router.cause': 'start',
          'waybill.router.verdict': 'fail',
        },
        events: [
          {
            name: 'gen_ai.evaluation.result',
            of: { 'gen_ai.evaluation.name': 'non-empty', 'gen_ai.evaluation.score.label': 'fail' },
          },
        ],
      },
      { name: 'chat large', of: { 'waybill.router.cause': 'escalation', 'waybill.router.rung': 1 } },
    ])
    expect(attempts[1]!.startMs).toBeGreaterThanOrEqual(attempts[0]!.startMs)
    expect(spans.problems).toEqual([])
    expect(spans.bodies.join()).not.toContain(CANARY)
    expect(spans.resources[0]).toMatchObject({ 'service.name': 'waybill-router' })
    const page = async () => (await fetch(`${open.at(-1)!.origin}/metrics`)).text()
    await expect.poll(page).toContain('\nwaybill_telemetry_spans_total 3\n')
    expect(await page()).toContain('\nwaybill_telemetry_dropped_total{reason="unreachable"} 0\n')
    // On its way the header is what the client sent.
    for (const { rawHeaders } of upstream.seen) {
      expect(rawHeaders[rawHeaders.findIndex(name => name.toLowerCase() === 'traceparent') + 1]).toBe(PARENT)
    }
  })

  it('continue the trace of an observed call, and begin one for a client without', async () => {
    const post = await serve()
    upstream.always(answer(200, JSON.stringify(chatAnswer('fine'))))
    const chat = { model: 'gpt-4.1-mini', messages: [{ role: 'user', content: CANARY }] }
    await (await post('/v1/chat/completions', chat, { traceparent: PARENT })).text()
    const own = await post('/v1/chat/completions', chat)
    await own.text()
    await (await post('/v1/chat/completions', chat, { traceparent: PARENT.replace(/01$/, '00') })).text()
    await spans.until(() => spans.spans.length >= 4)
    expect(spans.spans.map(({ name, kind }) => [name, kind])).toEqual([
      ['POST /v1/chat/completions', 2],
      ['chat gpt-4.1-mini', 3],
      ['POST /v1/chat/completions', 2],
      ['chat gpt-4.1-mini', 3],
    ])
    expect(spans.spans[0]).toMatchObject({ traceId: PARENT.slice(3, 35), parentSpanId: PARENT.slice(36, 52) })
    expect(spans.spans[2]!.traceId).toBe(own.headers.get('x-router-trace-id')!.replaceAll('-', ''))
    expect(spans.spans[2]!.parentSpanId).toBeUndefined()
    expect(spans.spans[1]!.of).toMatchObject({
      'gen_ai.provider.name': 'openai',
      'gen_ai.response.model': 'gpt-4.1-mini',
    })
    expect(spans.problems).toEqual([])
    // What the client does not keep is not sent.
    await open.pop()!.close()
    expect(spans.spans).toHaveLength(4)
  })

  it('cost calls nothing where the collector takes a request and never answers, and end with the router', async () => {
    spans.hold(new Promise(() => undefined))
    const post = await serve()
    upstream.always(answer(200, JSON.stringify(messagesAnswer('fine'))))
    for (let n = 0; n < 40; n++) expect((await post('/v1/messages', ASK)).status).toBe(200)
    const started = performance.now()
    await open.pop()!.close()
    expect(performance.now() - started).toBeLessThan(6000)
  })

  it('are not made where no collector is named', async () => {
    const post = await serve({})
    upstream.always(answer(200, JSON.stringify(messagesAnswer('fine'))))
    await (await post('/v1/messages', ASK, { traceparent: PARENT })).text()
    await open.pop()!.close()
    expect(spans.bodies).toEqual([])
  })
})

describe('traceparent', () => {
  it.each([
    [PARENT, true],
    ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00', false],
    ['cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-comes-later', true],
  ])('%s is continued', (header, sampled) => {
    expect(traceContext(header)).toEqual({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentId: 'b7ad6b7169203331',
      sampled,
    })
  })

  it.each([
    undefined,
    '',
    'nonsense',
    `${PARENT}-more`,
    PARENT.toUpperCase(),
    PARENT.replace(/^00/, 'ff'),
    PARENT.replace(/-0af7651916cd43dd8448eb211c80319c/, `-${'0'.repeat(32)}`),
    PARENT.replace(/-b7ad6b7169203331/, `-${'0'.repeat(16)}`),
  ])('%s is none', header => {
    expect(traceContext(header)).toBeUndefined()
  })
})
