import { afterEach, describe, expect, it } from 'vitest'
import { runtimeEnv } from '../../runtime/env.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { createLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { collectorOf } from '../../shared/telemetry/collector.ts'
import { exporter, type Span } from '../../shared/telemetry/exporter.ts'
import { VERSION } from '../../shared/version.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { collector } from '../collector.ts'
import { chatAnswer } from '../upstream/answers.ts'
import { type Api, api } from './api.ts'

const PROMPT = 'prompt-canary-77aa12'
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function started(options: Partial<RuntimeOptions> = {}) {
  const remote = await collector()
  open.push(remote)
  const env = runtimeEnv.parse({
    PLATFORM_OTLP_ENDPOINT: remote.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'X-Token=a%20b',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=production, Zone=a%2Cb',
  })
  const on = await api({ telemetry: collectorOf(env), ...options })
  open.push(on)
  return { remote, on }
}

async function ran({ json, events }: Api, agentName: string, prompt: string): Promise<Run> {
  const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt } })
  await (await events(`/v1/runs/${id}/events`)).all()
  return json<Run>(200, 'GET', `/v1/runs/${id}`)
}

const trace = (id: string) => id.replaceAll('-', '')

describe('traces', () => {
  it('are one for each run, a span for each step below it, in the GenAI words, and without a word of content', async () => {
    const { remote, on } = await started()
    const manifest = { tools: ['wait', 'ask_human'], systemPrompt: PROMPT }
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
    const run = await ran(on, 'worker', `/call*2 wait {"seconds":0}\n${PROMPT}`)
    expect(run.status).toBe('succeeded')
    await remote.until(() => remote.spans.some(span => span.name === 'invoke_agent worker'))
    expect(remote.problems).toEqual([])
    const spans = remote.spans.filter(span => span.traceId === trace(run.id))
    const root = spans.find(span => span.parentSpanId === undefined)
    expect(spans.filter(span => span !== root).map(span => [span.name, span.parentSpanId, span.code])).toEqual(
      ['chat echo', 'execute_tool wait', 'chat echo', 'execute_tool wait', 'chat echo'].map(name => [
        ...[name, root?.spanId, 1],
      ]),
    )
    expect(new Set(spans.map(span => span.spanId)).size).toBe(spans.length)
    expect(root).toMatchObject({
      name: 'invoke_agent worker',
      kind: 1,
      code: 1,
      of: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'worker',
        'gen_ai.agent.id': run.agentId,
        'gen_ai.usage.input_tokens': run.tokensIn,
        'gen_ai.usage.output_tokens': run.tokensOut,
        'waybill.run.id': run.id,
        'waybill.run.status': 'succeeded',
        'waybill.cost_usd': run.costUsd,
      },
    })
    const [chat, tool] = spans.filter(span => span !== root)
    expect(chat).toMatchObject({
      kind: 3,
      of: { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'echo', 'gen_ai.provider.name': 'demo' },
    })
    expect(chat?.of['gen_ai.usage.input_tokens']).toBeGreaterThan(0)
    expect(tool).toMatchObject({ kind: 1, of: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'wait' } })
    const used = spans.reduce(
      (sum, span) => sum + (span === root ? 0 : Number(span.of['gen_ai.usage.input_tokens'] ?? 0)),
      0,
    )
    expect(used).toBe(run.tokensIn)
    for (const body of remote.bodies) expect(body).not.toContain(PROMPT)
    expect(remote.headers[0]).toMatchObject({ 'x-token': 'a b', 'content-type': 'application/json' })
    expect(remote.resources[0]).toEqual({
      'service.name': 'waybill-runtime',
      'service.version': VERSION,
      'deployment.environment.name': 'production',
      Zone: 'a,b',
    })
  })

  it('say what failed by its code, and link a run to the one that started it', async () => {
    const { remote, on } = await started()
    await on.json(201, 'POST', '/v1/agents', {
      name: 'child',
      manifest: { tools: ['wait'], approvals: { tools: ['wait'] } },
    })
    await on.json(201, 'POST', '/v1/agents', { name: 'parent', manifest: { subAgents: [{ name: 'child' }] } })
    const run = await ran(on, 'parent', `/call agent__child {"prompt":"${PROMPT}"}`)
    const [child] = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${run.id}`)
    const cancelled = await on.json<Run>(201, 'POST', '/v1/runs', {
      agentName: 'child',
      input: { prompt: '/call wait {"seconds":0}' },
    })
    await on.json(200, 'POST', `/v1/runs/${cancelled.id}/cancel`, { reason: PROMPT })
    const roots = () => remote.spans.filter(span => span.parentSpanId === undefined)
    await remote.until(() => roots().length === 3)
    const of = (id: string | undefined) => roots().find(span => span.traceId === trace(id ?? ''))
    expect(of(child?.id)?.links).toEqual([{ traceId: trace(run.id), spanId: of(run.id)?.spanId }])
    expect(of(cancelled.id)).toMatchObject({ code: 0, of: { 'waybill.run.status': 'cancelled' } })
    for (const body of remote.bodies) expect(body).not.toContain(PROMPT)
  })

  it('go on in the router: a call to it is below the span of its step', async () => {
    const parents: (string | null)[] = []
    const { remote, on } = await started({
      async routerFetch(request) {
        parents.push(request.headers.get('traceparent'))
        return Response.json(chatAnswer('Routed.', 'm'))
      },
    })
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'auto' } })
    const run = await ran(on, 'worker', 'hello')
    await remote.until(() => remote.spans.some(span => span.name === 'invoke_agent worker'))
    const chat = remote.spans.find(span => span.kind === 3)
    expect(parents).toEqual([`00-${trace(run.id)}-${chat?.spanId}-01`])
    // No price is known of it: what the trace sums up is not all.
    const whole = remote.spans.find(span => span.name === 'invoke_agent worker')
    expect([whole?.of['waybill.unpriced_calls'], run.unpricedCalls]).toEqual([1, 1])
  })

  it('hold up no run and cost no memory while the collector does not answer, and what was dropped is counted', async () => {
    const remote = await collector()
    open.push(remote)
    const never = Promise.withResolvers<void>()
    remote.hold(never.promise)
    const on = await api({ telemetry: collectorOf(runtimeEnv.parse({ PLATFORM_OTLP_ENDPOINT: remote.endpoint })) })
    open.push(on)
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
    expect((await ran(on, 'worker', 'hello')).status).toBe('succeeded')
    never.resolve()
  })

  it('name in the log what keeps them from the collector', async () => {
    const lines: string[] = []
    const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => void lines.push(line) })
    const reach = async () => {
      throw new TypeError('fetch failed', { cause: new Error('certificate has expired') })
    }
    const to = exporter({
      ...{ url: 'https://c.example/v1/traces', fetch: reach, resource: [], scope: { name: 's', version: '1' } },
      ...{ metrics: createMetrics(), log, limits: { tries: 1, everyMs: 1 } },
    })
    const span = { traceId: 'a', spanId: 'b', name: 'c', kind: 1, attributes: [], status: { code: 0 } } as const
    to.add({ ...span, attributes: [], startTimeUnixNano: '1', endTimeUnixNano: '2' })
    await to.close()
    expect(lines.join()).toContain('"problem":"certificate has expired"')
  })

  it('are off unless somebody names a collector', () => {
    const of = (vars: Record<string, string>) => collectorOf(runtimeEnv.parse(vars))
    expect(of({})).toBeUndefined()
    expect(of({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/' })?.url).toBe('http://c:4318/v1/traces')
    expect(of({ PLATFORM_OTLP_ENDPOINT: 'http://c/x/v1/traces' })?.url).toBe('http://c/x/v1/traces')
    expect(() => of({ PLATFORM_OTLP_ENDPOINT: 'c:4318' })).toThrow()
    expect(() => of({ PLATFORM_OTLP_ENDPOINT: 'http://me:secret@c:4318' })).toThrow(/OTEL_EXPORTER_OTLP_HEADERS/)
    expect(() => of({ OTEL_EXPORTER_OTLP_HEADERS: 'nothing' })).toThrow(/name=value/)
    expect(() => of({ OTEL_RESOURCE_ATTRIBUTES: 'nothing' })).toThrow(/name=value/)
  })

  it.each([
    [{}, 'waybill-runtime'],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'service.name=agents' }, 'agents'],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'service.name=agents', OTEL_SERVICE_NAME: 'mine' }, 'mine'],
  ])('have a name of their service: %j', (env, name) => {
    const of = collectorOf(runtimeEnv.parse({ PLATFORM_OTLP_ENDPOINT: 'http://c:4318', ...env }))
    expect(of?.resource['service.name']).toBe(name)
  })
})

describe('the exporter', () => {
  const span = (at: number): Span => ({
    traceId: 'a'.repeat(32),
    spanId: at.toString(16).padStart(16, '0'),
    name: `s${at}`,
    kind: 1,
    startTimeUnixNano: '1700000000000000000',
    endTimeUnixNano: '1700000000000000001',
    attributes: [],
    status: { code: 0 },
  })

  async function sending(limits: Parameters<typeof exporter>[0]['limits']) {
    const remote = await collector()
    open.push(remote)
    const metrics = createMetrics()
    const lines: string[] = []
    const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => void lines.push(line) })
    const made = exporter({
      url: `${remote.endpoint}/v1/traces`,
      fetch: (url, init) => fetch(url, init),
      resource: [],
      metrics,
      scope: { name: 'waybill', version: '1' },
      log,
      limits: { pauseMs: 1, everyMs: 1, ...limits },
    })
    const count = (name: string) => new RegExp(`^waybill_telemetry_${name} (\\d+)$`, 'm').exec(metrics.text())?.[1]
    return { remote, made, count, lines }
  }

  it('sends many at once, each once and in order', async () => {
    const { remote, made, count } = await sending({ batch: 100 })
    for (let at = 0; at < 1050; at++) made.add(span(at))
    await made.close()
    expect(remote.spans.map(({ name }) => name)).toEqual(Array.from({ length: 1050 }, (_, at) => `s${at}`))
    expect(remote.bodies.length).toBe(11)
    expect(count('spans_total')).toBe('1050')
  })

  it('drops what does not fit while the collector is slow, and counts it', async () => {
    const { remote, made, count } = await sending({ batch: 10, queued: 50 })
    const slow = Promise.withResolvers<void>()
    remote.hold(slow.promise)
    for (let at = 0; at < 20; at++) made.add(span(at))
    await new Promise(resolve => setTimeout(resolve, 20))
    for (let at = 20; at < 200; at++) made.add(span(at))
    slow.resolve()
    await made.close()
    const kept = remote.spans.length
    expect(kept).toBeLessThanOrEqual(70)
    expect(count('dropped_total{reason="queue_full"}'.replace(/[{}]/g, '\\$&'))).toBe(String(200 - kept))
  })

  it('waits as long as the collector asks', async () => {
    const { remote, made } = await sending({})
    remote.answer(429, { headers: { 'retry-after': '1' } })
    const from = performance.now()
    made.add(span(1))
    await remote.until(() => remote.bodies.length === 1)
    remote.answer(200)
    await remote.until(() => remote.spans.length === 1)
    expect(performance.now() - from).toBeGreaterThan(950)
    await made.close()
  })

  it.each([429, 503])('counts as refused what a collector answers with %i to the end', async status => {
    const { remote, made, count, lines } = await sending({})
    remote.answer(status)
    made.add(span(1))
    await remote.until(() => remote.bodies.length === 3)
    await made.close()
    expect([count('dropped_total\\{reason="refused"\\}'), count('dropped_total\\{reason="unreachable"\\}')]).toEqual([
      '1',
      '0',
    ])
    expect(lines.join()).toContain(`"problem":"status ${status}"`)
  })

  it('says why a collector refuses a request, in its words and not at any length', async () => {
    for (const [body, problem] of [
      [{ code: 3, message: 'http: request body too large' }, 'status 400: http: request body too large'],
      [{ message: 'x'.repeat(5000) }, `status 400: ${'x'.repeat(200)}`],
      [{ message: 1 }, 'status 400'],
    ] as const) {
      const { remote, made, lines } = await sending({})
      remote.answer(400, { body })
      made.add(span(1))
      await made.close()
      expect(lines.map(line => (JSON.parse(line) as { problem: string }).problem)).toEqual([problem])
    }
  })

  it('counts what a collector refuses of a request that it takes, and says why', async () => {
    const { remote, made, count, lines } = await sending({})
    remote.answer(200, { body: { partialSuccess: { rejectedSpans: '2', errorMessage: 'too old' } } })
    for (let at = 0; at < 5; at++) made.add(span(at))
    await made.close()
    expect([count('spans_total'), count('dropped_total\\{reason="refused"\\}')]).toEqual(['3', '2'])
    expect(remote.bodies).toHaveLength(1)
    expect(lines.join()).toContain('"problem":"too old"')
  })

  it('ends in time with a collector that takes a request and never answers, and counts every span', async () => {
    const { remote, made, count } = await sending({ batch: 10, closeMs: 200 })
    remote.hold(new Promise(() => undefined))
    for (let at = 0; at < 95; at++) made.add(span(at))
    const from = performance.now()
    await made.close()
    expect(performance.now() - from).toBeLessThan(2000)
    expect([count('spans_total'), count('dropped_total\\{reason="unreachable"\\}')]).toEqual(['0', '95'])
  })

  it('tries again where it is told to, and not where it is refused', async () => {
    const { remote, made, count } = await sending({})
    remote.answer(503)
    made.add(span(1))
    await remote.until(() => remote.bodies.length === 1)
    remote.answer(200)
    await remote.until(() => remote.spans.length === 1)
    remote.answer(401)
    made.add(span(2))
    await made.close()
    expect(remote.bodies.length).toBe(3)
    expect(count('dropped_total\\{reason="refused"\\}')).toBe('1')
    expect(count('spans_total')).toBe('1')
  })
})
