import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { StepFailure } from '../../runtime/execution/failure.ts'
import type { ModelAnswer, ModelCall, ModelRequest } from '../../runtime/execution/models/model.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { RequestMessage, StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { isFull } from '../slice.ts'
import { api } from './api.ts'
import { until } from './node-fixture.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

type Sent = Map<string, ModelRequest>

const answer = (more: Partial<ModelAnswer>): ModelAnswer => ({
  text: '',
  toolCalls: [],
  stop: 'end',
  provider: 'test',
  model: 'test/m',
  spent: { tokensIn: 100, tokensOut: 5, costNano: 1000 },
  ...more,
})

const calls = (...made: [name: string, given: Record<string, unknown>][]) =>
  answer({
    text: 'I call',
    stop: 'tools',
    toolCalls: made.map(([name, given], at) => ({ id: `c${at}`, name, arguments: given })),
  })

/** What one turn of the model comes to; a failure is tried again, and the same turn then goes on with the next. */
type Turn = 'call' | 'calls' | 'unknown' | 'unfit' | 'long' | 'read' | 'pause' | 'wrong' | 'fail'

function said(turn: Turn): ModelAnswer {
  switch (turn) {
    case 'call':
      return calls(['wait', { seconds: 0 }])
    case 'calls':
      return calls(['wait', { seconds: 0 }], ['http_request', { url: 'https://page.example.com/short' }])
    case 'unknown':
      return calls(['launch', { now: true }], ['wait', { seconds: 0 }])
    case 'unfit':
      return calls(['wait', { seconds: 'soon, says ann@example.com' }])
    case 'long':
      return calls(['http_request', { url: 'https://page.example.com/long' }])
    case 'read':
      return calls(['read_result', { result: 'tool-1-1', fromLine: 3, lines: 2 }])
    case 'pause':
      return answer({ text: 'One moment. ', stop: 'pause', blocks: [{ type: 'text', text: 'One moment. ' }] })
    default:
      return answer({ text: `not JSON, by ann@example.com: ${'é'.repeat(200)}` })
  }
}

/** A model that goes through the turns of a plan, and keeps what it was sent by the step that sent it. */
function planned(sent: Sent, plan: readonly Turn[]) {
  const left = new Map<string, Turn[]>()
  return async (request: ModelRequest, { key }: ModelCall): Promise<ModelAnswer> => {
    const [, stepId = ''] = key.split(':')
    sent.set(stepId, structuredClone(request))
    if (stepId.startsWith('compaction')) return answer({ text: 'It was long; ann@example.com asked.' })
    if (stepId.startsWith('confidence')) return answer({ text: '{"confidence": 1}' })
    const turns = left.get('turns') ?? [...plan]
    left.set('turns', turns)
    const turn = turns.shift()
    if (turn === 'fail') throw new StepFailure('overloaded', 'try later', { transient: true })
    return turn === undefined ? answer({ text: '{"n":1}' }) : said(turn)
  }
}

type Ask = (request: ModelRequest, call: ModelCall) => Promise<ModelAnswer>

async function service(
  ask: Ask,
  { contextTokens, ...options }: Partial<RuntimeOptions> & { contextTokens?: number; db?: Db } = {},
) {
  const line = (at: number) => `line ${at} of a page, to ann@example.com`
  const long = Array.from({ length: 900 }, (_, at) => line(at)).join('\n')
  const on = await api({
    outbound: async ({ url }) => ({
      status: 200,
      headers: {},
      body: new TextEncoder().encode(url.href.endsWith('long') ? long : 'short'),
      truncated: false,
    }),
    models: { find: async () => ({ id: 'test/m', ask, ...(contextTokens !== undefined && { contextTokens }) }) },
    ...options,
  })
  ends.push(on.close)
  return on
}

type On = Awaited<ReturnType<typeof service>>

async function ended(on: Pick<On, 'json'>, id: string): Promise<Run> {
  return until(async () => {
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    return isTerminal(run.status) && run
  }, `run ${id} ends`)
}

async function start(on: Pick<On, 'json'>, manifest: object, input: object = { prompt: 'Hello, ann@example.com' }) {
  await on.json(201, 'POST', '/v1/agents', { name: 'agent', manifest })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'agent', input })
  return id
}

/** A message of the answer without what the answer adds to it. */
function plain(message: RequestMessage): unknown {
  if (message.role === 'user') return { role: 'user', text: message.text }
  if (message.role === 'assistant') return { role: 'assistant', text: message.text, toolCalls: message.toolCalls }
  const results = message.results.map(({ callId, name, content, failed }) => ({ callId, name, content, failed }))
  return { role: 'tool', results }
}

const bare = (message: ModelRequest['messages'][number]) => {
  const { role } = message
  return role === 'assistant' ? { role, text: message.text, toolCalls: message.toolCalls } : message
}

async function expectAsSent(on: Pick<On, 'json'>, runId: string, sent: Sent): Promise<Map<string, StepRequest>> {
  const found = new Map<string, StepRequest>()
  for (const [stepId, request] of sent) {
    const told = await on.json<StepRequest>(200, 'GET', `/v1/runs/${runId}/steps/${stepId}/request`)
    const { system, messages, tools, maxOutputTokens, temperature, outputSchema, exact } = told.request ?? {}
    expect({ stepId, exact }).toEqual({ stepId, exact: true })
    expect({
      stepId,
      system: system?.text,
      messages: messages?.map(plain),
      tools,
      maxOutputTokens,
      temperature,
      outputSchema,
    }).toEqual({
      stepId,
      system: request.system,
      messages: request.messages.map(bare),
      tools: request.tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
      maxOutputTokens: request.maxOutputTokens,
      temperature: request.temperature,
      outputSchema: request.outputSchema,
    })
    found.set(stepId, told)
  }
  return found
}

const RETRY = { maxAttempts: 4, backoffMs: 0, maxBackoffMs: 1, jitter: false }
const SCHEMA = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

const turn = fc.constantFrom<Turn>('call', 'calls', 'unknown', 'unfit', 'long', 'read', 'pause', 'wrong', 'fail')
const cases = fc.record({
  plan: fc.array(turn, { maxLength: 9 }),
  /** Small windows are nearly full after a page or two. */
  contextTokens: fc.constantFrom(undefined, 2500, 6000, 200_000),
  redact: fc.boolean(),
  schema: fc.boolean(),
  confidence: fc.constantFrom(undefined, 'verbalized', 'self-consistency'),
  /** The process ends while the model is asked for so manieth time. */
  crashAt: fc.option(fc.nat(8)),
})

type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never

function manifestOf({ redact, schema, confidence }: Case): object {
  return {
    systemPrompt: 'You are careful.',
    retry: RETRY,
    tools: ['wait', 'http_request'],
    egress: [{ host: 'page.example.com' }],
    limits: { maxOutputTokens: 500, maxTurns: 20 },
    outputRepairs: 5,
    ...(redact && { privacy: { redact: ['email'] } }),
    ...(schema && { outputSchema: SCHEMA }),
    ...(confidence && {
      confidence: { threshold: 0, estimator: confidence, samples: 2, gates: ['tools', 'output'], onLow: 'fail' },
    }),
  }
}

/** The run of a case; where it crashes, another process takes it up. */
async function executed(one: Case) {
  const sent: Sent = new Map()
  const ask = planned(sent, one.plan)
  const { contextTokens, crashAt } = one
  const window = contextTokens === undefined ? {} : { contextTokens }
  if (crashAt === null) {
    const on = await service(ask, window)
    return { on, sent, id: await start(on, manifestOf(one)) }
  }
  const db = await openDb(':memory:')
  const asked = Promise.withResolvers<void>()
  let count = 0
  const dying: Ask = (request, call) => {
    if (count++ !== crashAt) return ask(request, call)
    asked.resolve()
    return new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)))
  }
  const first = await service(dying, { ...window, db, owner: 'first', timers: false })
  // The store outlives the first process.
  ends.pop()
  const id = await start(first, manifestOf(one))
  await Promise.race([asked.promise, ended(first, id)])
  await first.runtime.close(0)
  const on = await service(ask, { ...window, db, owner: 'second', isGone: owner => owner === 'first' })
  return { on, sent, id }
}

describe('what a model step sent', () => {
  it('is rebuilt as the model got it: calls, compactions, repairs, pauses, retries, redaction, crashes', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async one => {
        const { on, sent, id } = await executed(one)
        await ended(on, id)
        expect(sent.size).toBeGreaterThan(0)
        await expectAsSent(on, id, sent)
        for (const end of ends.splice(0).toReversed()) await end()
      }),
      { numRuns: isFull ? 300 : 40 },
    )
  }, 120_000)
})

const request = (on: Pick<On, 'json'>, runId: string, stepId: string, query = '') =>
  on.json<StepRequest>(200, 'GET', `/v1/runs/${runId}/steps/${stepId}/request${query}`)

/** A model that says one thing after the other. */
function scripted(sent: Sent, ...answers: (ModelAnswer | Error)[]): Ask {
  return async (asked, { key }) => {
    sent.set(key, structuredClone(asked))
    const next = answers.shift() ?? answer({ text: 'done' })
    if (next instanceof Error) throw next
    return next
  }
}

describe('the answer about a model step', () => {
  it('says what it cost, which part came from a cache, which step gave each result, and what failed before', async () => {
    const sent: Sent = new Map()
    const spent = { tokensIn: 400, tokensOut: 7, costNano: 2500 }
    const none = { inputNano: 0, cacheReadNano: 0, cacheWriteNano: 0, outputNano: 0 }
    const parts = { ...none, cacheReadTokens: 390, cacheWriteTokens: 5 }
    const failure = new StepFailure('overloaded', 'try later', { transient: true })
    const last = answer({ text: 'The end.', spent, parts, routerTraceId: 't-1', responseId: 'r-1' })
    const on = await service(scripted(sent, calls(['wait', { seconds: 0 }]), failure, last))
    const id = await start(on, { tools: ['wait'], systemPrompt: 'Be short.', retry: RETRY })
    await ended(on, id)
    const told = await request(on, id, 'model-2')
    expect(told).toMatchObject({
      step: { stepId: 'model-2', kind: 'model', attempt: 2, tokensIn: 400, tokensOut: 7, costUsd: 0.0000025 },
      cacheReadTokens: 390,
      cacheWriteTokens: 5,
      routerTraceId: 't-1',
      responseId: 'r-1',
      failures: [{ attempt: 1, error: 'try later', code: 'overloaded', costUsd: 0 }],
      answer: { text: 'The end.', toolCalls: [], stop: 'end' },
      request: {
        exact: true,
        system: { text: 'Be short.', cached: 'whole' },
        toolsCached: 'whole',
        messageCount: 3,
        firstMessage: 0,
        messages: [
          { role: 'user', text: 'Hello, ann@example.com', cached: 'whole' },
          { role: 'assistant', text: 'I call', stepId: 'model-1', cached: 'whole' },
          { role: 'tool', results: [{ name: 'wait', stepId: 'timer-1-1' }], cached: 'part' },
        ],
      },
    })
    const { system, messages, toolTokens } = told.request!
    const all = [toolTokens, system.estimatedTokens, ...messages.map(one => one.estimatedTokens)]
    const sum = all.reduce((total: number, tokens = 0) => total + tokens, 0)
    expect(Math.abs(sum - 400)).toBeLessThanOrEqual(all.length)
    expect((await on.call('GET', `/v1/runs/${id}/steps/timer-1-1/request`)).status).toBe(400)
    expect((await on.call('GET', `/v1/runs/${id}/steps/model-9/request`)).status).toBe(404)
  })

  it('is there for a step that failed and for one that is still asked', async () => {
    const asked = Promise.withResolvers<void>()
    const failing = await service(async () => {
      throw new StepFailure('refused', 'no such model')
    })
    const failed = await start(failing, {})
    await ended(failing, failed)
    expect(await request(failing, failed, 'model-1')).toMatchObject({
      step: { status: 'failed', error: 'no such model' },
      request: { exact: true, messages: [{ role: 'user', text: 'Hello, ann@example.com' }] },
      failures: [{ code: 'refused' }],
    })
    const waiting = await service((_, { signal }) => {
      asked.resolve()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const open = await start(waiting, {})
    await asked.promise
    const told = await request(waiting, open, 'model-1')
    expect(told).toMatchObject({ step: { status: 'running' }, request: { exact: true }, failures: [] })
    expect(told.answer).toBeUndefined()
  })

  it('says that prompts are not stored where the agent stores none, with model, tokens and cost', async () => {
    const on = await service(scripted(new Map(), calls(['wait', { seconds: 0 }])))
    const id = await start(on, { tools: ['wait'], privacy: { storePrompts: false } })
    await ended(on, id)
    const told = await request(on, id, 'model-1')
    expect(told).toMatchObject({ without: 'not_stored', step: { model: 'test/m', tokensIn: 100, costUsd: 0.000001 } })
    expect(JSON.stringify(told)).not.toMatch(/ann@example|I call/)
    const { rows } = await on.db.execute('select * from tool_lists')
    expect(rows).toEqual([])
  })

  it('is a page of bounded size for a conversation that is not', async () => {
    const sent: Sent = new Map()
    const long = 'x'.repeat(600_000)
    const texts = Array.from({ length: 9 }, () => answer({ text: long, stop: 'pause', blocks: [] }))
    const on = await service(scripted(sent, ...texts), { contextTokens: 10_000_000 })
    const id = await start(on, {}, { prompt: long })
    await ended(on, id)
    const seen: number[] = []
    for (let before = ''; ; ) {
      const answered = await on.call('GET', `/v1/runs/${id}/steps/model-10/request${before}`)
      const text = await answered.text()
      expect(text.length).toBeLessThan(2_000_000)
      const { request: page } = JSON.parse(text) as StepRequest
      expect(page).toMatchObject({ exact: true, messageCount: 10 })
      for (const message of page!.messages) {
        expect(message).toMatchObject({ omitted: 600_000 - 262_144 })
      }
      seen.unshift(...page!.messages.map((_, at) => page!.firstMessage + at))
      if (page!.firstMessage === 0) break
      before = `?before=${page!.firstMessage}`
    }
    expect(seen).toEqual(Array.from({ length: 10 }, (_, at) => at))
  })

  it('names the run that made a step which a fork copied, and tells the rest with the input of the fork', async () => {
    const sent: Sent = new Map()
    const on = await service(scripted(sent, calls(['wait', { seconds: 0 }]), answer({ text: 'one' })))
    const id = await start(on, { tools: ['wait'] })
    await ended(on, id)
    const input = { prompt: 'Another' }
    const fork = await on.json<Run>(201, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2', input })
    await ended(on, fork.id)
    expect(await request(on, fork.id, 'model-1')).toMatchObject({
      copiedFrom: { runId: id },
      step: { copied: true },
      request: { exact: true, messages: [{ text: 'Hello, ann@example.com' }] },
    })
    expect(await request(on, fork.id, 'model-2')).toMatchObject({
      request: { exact: true, messages: [{ text: 'Another' }, { text: 'I call' }, {}], tools: [{ name: 'wait' }] },
    })
    await on.json(204, 'DELETE', `/v1/runs/${id}`)
    expect(await request(on, fork.id, 'model-1')).toMatchObject({ without: 'deleted' })
  })

  it('tells a turn of a session with the turns and the hints as they were then', async () => {
    const sent: Sent = new Map()
    const on = await service(scripted(sent, ...['one', 'two', 'three'].map(text => answer({ text }))))
    await on.json(201, 'POST', '/v1/agents', { name: 'friend', manifest: { systemPrompt: 'Be kind.' } })
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'friend' })
    const messages = [
      { content: 'first', systemHint: 'In French.' },
      { content: 'second', turnHint: 'Now at length.' },
      { content: 'third', systemHint: 'In Greek.' },
    ]
    const turns: string[] = []
    for (const message of messages) {
      const { turnId } = await on.json<{ turnId: string }>(200, 'POST', `/v1/sessions/${id}/messages`, message)
      turns.push(turnId)
    }
    for (const [at, turnId] of turns.entries()) {
      await expectAsSent(on, turnId, new Map([['model-1', sent.get(`${turnId}:model-1:1`)!]]))
      const { request: told } = await request(on, turnId, 'model-1')
      expect(told?.system.text).toContain(at < 2 ? 'In French.' : 'In Greek.')
      expect(told?.messageCount).toBe(2 * at + 1)
    }
  })
})

it('is what was sent last, where a step is asked again after a crash with another window', async () => {
  const db = await openDb(':memory:')
  const sent: Sent = new Map()
  const plan: Turn[] = ['long']
  const ask = planned(sent, plan)
  const asked = Promise.withResolvers<void>()
  const dying: Ask = (asking, call) => {
    if (!call.key.includes(':model-2:')) return ask(asking, call)
    asked.resolve()
    return new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)))
  }
  const first = await service(dying, { db, owner: 'first', timers: false, contextTokens: 200_000 })
  ends.pop()
  const manifest = { tools: ['http_request'], egress: [{ host: 'page.example.com' }], limits: { maxOutputTokens: 500 } }
  const id = await start(first, manifest)
  await asked.promise
  const whole = await request(first, id, 'model-2')
  await first.runtime.close(0)
  const on = await service(ask, { db, owner: 'second', isGone: owner => owner === 'first', contextTokens: 9000 })
  await ended(on, id)
  const told = await request(on, id, 'model-2')
  expect(told.request?.messages.map(plain)).toEqual(sent.get('model-2')?.messages.map(bare))
  expect(told.request?.tools.map(({ name }) => name)).toEqual(['http_request', 'read_result'])
  expect([whole.request?.exact, told.request?.exact]).toEqual([true, true])
  expect(whole.request?.messages).not.toEqual(told.request?.messages)
})

describe('what is kept for it', () => {
  it('is a list of tools once for each version of an agent, sealed, and gone with the last run', async () => {
    const now = { ms: Date.parse('2026-01-02T03:04:05.000Z') }
    const clock = { now: () => new Date(now.ms), monotonic: () => performance.now() }
    const masterKey = new Uint8Array(32).fill(5)
    const on = await service(scripted(new Map()), { masterKey, clock, retentionDays: 1, timers: false })
    const id = await start(on, { tools: ['wait', 'ask_human'] })
    await ended(on, id)
    const more = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'agent' })
    await ended(on, more.id)
    const { rows } = await on.db.execute('select body from tool_lists')
    expect(rows).toHaveLength(1)
    expect(String(rows[0]?.[0])).toMatch(/^wbd1\./)
    expect(await request(on, id, 'model-1')).toMatchObject({
      request: { tools: [{ name: 'wait' }, { name: 'ask_human' }] },
    })
    now.ms += 3 * 86_400_000
    await on.runtime.scheduled()
    expect((await on.call('GET', `/v1/runs/${id}`)).status).toBe(404)
    expect((await on.db.execute('select body from tool_lists')).rows).toEqual([])
  })
})
