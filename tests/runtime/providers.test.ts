import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createRouter } from '../../router/router.ts'
import { markUnavailable } from '../../shared/sql/db-fault.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { ProviderItem, ProviderTested } from '../../shared/wire/runtime/provider.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { expectWithin } from '../crowding.ts'
import { chatAnswer, chatFrames, messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { completionFrames, completionOf, event, messageFrames, messageOf } from '../upstream/frames.ts'
import { answer, reset, type Seen, silence, stream } from '../upstream/scripted.ts'
import { CANARY, type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function fixture(options: Parameters<typeof providerFixture>[0] = {}): Promise<ProviderFixture> {
  const made = await providerFixture(options)
  open.push(made)
  return made
}

const header = ({ rawHeaders }: Seen, name: string) =>
  rawHeaders[rawHeaders.findIndex((one, at) => at % 2 === 0 && one.toLowerCase() === name) + 1]
const sent = (seen: Seen | undefined) => JSON.parse(seen!.body.toString()) as Record<string, unknown>
const PROVIDERS = '/v1/settings/llm-providers'

/** A router with one gate, which says after a second that an answer is late. */
const gatedRouter = (origin: string, rungs: readonly string[], route = '') =>
  createRouter({
    config: `
price = [
  { model = "small/tiny", input_per_mtok = 1, output_per_mtok = 2 },
  { model = "small/large", input_per_mtok = 10, output_per_mtok = 20 },
]
provider = [{ id = "small", dialect = "chat", base_url = "${origin}/v1", auth = "none" }]
[stream]
keepalive_after_ms = 1000
[[route]]
match = {}
mode = "enforce"
ladder = ${JSON.stringify(rungs.map(rung => `small/${rung}`))}
gates = ["json-valid"]
${route}
`,
  })

describe('configuring a provider', () => {
  it('keeps it, shows it without its key, replaces it and forgets it', async () => {
    const { json, remote } = await fixture()
    const given = {
      provider: 'openai-compatible:lab',
      apiKey: CANARY,
      baseUrl: remote.origin,
      headers: { 'x-team': 'a' },
    }
    expect(await json(200, 'POST', PROVIDERS, given)).toEqual({
      provider: given.provider,
      configured: true,
      status: 'saved',
      baseUrl: remote.origin,
    })
    const [item] = await json<ProviderItem[]>(200, 'GET', PROVIDERS)
    expect(item).toEqual({
      provider: given.provider,
      configured: true,
      source: 'stored',
      baseUrl: remote.origin,
      keyHint: 'TAIL',
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    await json(200, 'POST', PROVIDERS, { ...given, apiKey: 'short-key', headers: undefined })
    const [replaced] = await json<ProviderItem[]>(200, 'GET', PROVIDERS)
    expect(replaced).not.toHaveProperty('keyHint')
    expect(replaced?.createdAt).toBe(item?.createdAt)
    await json(204, 'DELETE', `${PROVIDERS}/${given.provider}`)
    expect(await json(200, 'GET', PROVIDERS)).toEqual([])
    await json(404, 'DELETE', `${PROVIDERS}/${given.provider}`)
    await json(404, 'DELETE', `${PROVIDERS}/nothing`)
    await json(404, 'POST', `${PROVIDERS}/anthropic/test`, {})
  })

  it('refuses, naming the field: an unknown one, a missing key, a private address, a header that cannot be sent', async () => {
    const { json } = await fixture()
    const refusals: [object, string][] = [
      [{ provider: 'nobody', apiKey: 'k' }, 'provider'],
      [{ provider: 'anthropic' }, 'apiKey'],
      [{ provider: 'openai-compatible' }, 'baseUrl'],
      [{ provider: 'bedrock', apiKey: 'k', region: 'eu-west-1' }, 'provider'],
      [{ provider: 'vertex', apiKey: '{}', project: 'p', location: 'l' }, 'provider'],
      [{ provider: 'openai', apiKey: 'a\nb' }, 'apiKey'],
      [{ provider: 'openai', apiKey: 'k', baseUrl: 'http://10.0.0.1/v1' }, 'baseUrl'],
      [{ provider: 'openai', apiKey: 'k', baseUrl: 'http://169.254.169.254/' }, 'baseUrl'],
      [{ provider: 'openai', apiKey: 'k', baseUrl: 'https://example.com/?a=b' }, 'baseUrl'],
      [{ provider: 'openai', apiKey: 'k', headers: { host: 'x' } }, 'headers.host'],
      [{ provider: 'openai', apiKey: 'k', headers: { 'x-a': 'é' } }, 'headers.x-a'],
    ]
    for (const [body, path] of refusals) {
      const { code, details } = await json<{ code: string; details: { path: string }[] }>(400, 'POST', PROVIDERS, body)
      expect([body, code, details[0]?.path]).toEqual([body, 'validation_failed', path])
    }
    expect(await json(200, 'GET', PROVIDERS)).toEqual([])
  })

  it('stores no key where there is no master key, and says which variable is missing', async () => {
    const { json } = await fixture({ masterKey: undefined })
    const refused = await json(400, 'POST', PROVIDERS, { provider: 'openai', apiKey: CANARY })
    expect(refused).toMatchObject({ error: expect.stringContaining('PLATFORM_MASTER_KEY') })
  })

  it('takes those of the environment for every tenant, until one stores its own', async () => {
    const made = await fixture({ providers: [{ provider: 'anthropic', apiKey: `env-${CANARY}` }] })
    expect(await made.json(200, 'GET', PROVIDERS)).toMatchObject([
      { provider: 'anthropic', source: 'environment', keyHint: 'TAIL' },
    ])
    expect(await made.json(404, 'DELETE', `${PROVIDERS}/anthropic`)).toMatchObject({
      error: expect.stringContaining('environment'),
    })
    await made.configure('anthropic')
    expect(await made.json(200, 'GET', PROVIDERS)).toMatchObject([{ provider: 'anthropic', source: 'stored' }])
  })

  it('tries it with one small call, and a refusal of the vendor is a result', async () => {
    const { json, remote, configure } = await fixture()
    await configure('anthropic')
    remote.queue(
      stream(messagesFrames(['OK'])),
      answer(401, JSON.stringify({ error: { message: `bad key ${CANARY}` } })),
    )
    const good = await json<ProviderTested>(200, 'POST', `${PROVIDERS}/anthropic/test`, {})
    expect(good).toMatchObject({ success: true, provider: 'anthropic', model: 'anthropic/claude-haiku-4-5' })
    const bad = await json<ProviderTested>(200, 'POST', `${PROVIDERS}/anthropic/test`, { model: 'anthropic/claude-x' })
    expect(bad).toEqual({ success: false, provider: 'anthropic', error: 'anthropic answered 401: bad key [redacted]' })
    expect(remote.seen.map(seen => sent(seen).model)).toEqual(['claude-haiku-4-5', 'claude-x'])
    expect(await json(200, 'GET', PROVIDERS)).toMatchObject([{ lastTest: { success: false, at: expect.any(String) } }])
    await configure('anthropic')
    expect((await json<ProviderItem[]>(200, 'GET', PROVIDERS))[0]).not.toHaveProperty('lastTest')
  })

  it('tries a host of its own with a model that the host lists', async () => {
    const { json, remote, configure } = await fixture()
    await configure('openai-compatible')
    remote.queue(answer(200, '{"data":[{"id":"local/llama"}]}'), answer(200, JSON.stringify(chatAnswer('OK', 'llama'))))
    expect(await json(200, 'POST', `${PROVIDERS}/openai-compatible/test`)).toMatchObject({ success: true })
    expect(remote.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /v1/models',
      'POST /v1/chat/completions',
    ])
    expect(sent(remote.seen[1])).toMatchObject({ model: 'local/llama', max_tokens: 16 })
  })
})

describe('a run through a provider', () => {
  it('sends the documented call of the messages dialect and counts what it cost', async () => {
    const { remote, configure, ran } = await fixture()
    await configure('anthropic')
    remote.always(stream(messagesFrames(['Hel', 'lo.'])))
    const { run, steps } = await ran('anthropic/claude-haiku-4-5', { systemPrompt: 'Be brief.' })
    expect(run).toMatchObject({
      status: 'succeeded',
      output: { result: 'Hello.' },
      model: 'anthropic/claude-haiku-4-5',
    })
    // 100 + 1000·1.25 + 2000·2 + 10000·0.1 at 1 USD and 50 at 5 USD for a million.
    expect(run).toMatchObject({ tokensIn: 13_100, tokensOut: 50, costUsd: 0.0066 })
    expect(steps).toMatchObject([{ stepId: 'model-1', provider: 'anthropic', costUsd: 0.0066 }])
    const [seen] = remote.seen
    expect([seen?.method, seen?.url]).toEqual(['POST', '/v1/messages'])
    expect(header(seen!, 'x-api-key')).toBe(CANARY)
    expect(header(seen!, 'anthropic-version')).toBe('2023-06-01')
    expect(header(seen!, 'idempotency-key')).toBe(`${run.id}:model-1:1`)
    expect(sent(seen)).toEqual({
      model: 'claude-haiku-4-5',
      max_tokens: 4096,
      system: 'Be brief.',
      stream: true,
      messages: [{ role: 'user', content: 'Say hello.' }],
    })
  })

  it('sends the documented call of the chat dialect, also where the host answers in one piece', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai')
    remote.queue(stream(chatFrames(['Hel', 'lo.'], { usage: true })), answer(200, JSON.stringify(chatAnswer('Whole.'))))
    const { run } = await ran('gpt-4.1-mini', { systemPrompt: 'Be brief.' })
    // 200 at 0.4, 1000 cached at 0.1 and 50 at 1.6 USD for a million.
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'Hello.' }, costUsd: 0.00026 })
    expect(run).toMatchObject({ tokensIn: 1200, tokensOut: 50, model: 'openai/gpt-4.1-mini' })
    const [seen] = remote.seen
    expect(seen?.url).toBe('/v1/chat/completions')
    expect(header(seen!, 'authorization')).toBe(`Bearer ${CANARY}`)
    expect(sent(seen)).toEqual({
      model: 'gpt-4.1-mini',
      max_completion_tokens: 4096,
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Say hello.' },
      ],
    })
    const { run: whole } = await ran('gpt-4.1-mini')
    expect(whole).toMatchObject({ output: { result: 'Whole.' }, tokensIn: 1200, costUsd: 0.00026 })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.at(-1)?.meta).toMatchObject({ responseId: 'chatcmpl-01', provider: 'openai' })
  })

  it('makes parallel tool calls and sends their results back under their ids, in both dialects', async () => {
    const made = await fixture()
    const { remote, configure, ran } = made
    await configure('anthropic')
    await configure('openai')
    const wait = [
      { type: 'text', text: 'Waiting.' },
      { type: 'tool_use', id: 'toolu_1', name: 'wait', input: { seconds: 0 } },
      { type: 'tool_use', id: 'toolu_2', name: 'wait', input: { seconds: 0 } },
    ]
    remote.queue(stream(messageFrames(messageOf(wait))), stream(messagesFrames(['Done.'])))
    expect((await ran('anthropic/claude-haiku-4-5', { tools: ['wait'] })).run).toMatchObject({
      output: { result: 'Done.' },
    })
    expect(sent(remote.seen[0]).tools).toMatchObject([{ name: 'wait', input_schema: { type: 'object' } }])
    const [, said, results] = sent(remote.seen[1]).messages as { role: string; content: object[] }[]
    expect(said).toEqual({ role: 'assistant', content: wait })
    expect(results).toMatchObject({
      role: 'user',
      content: ['toolu_1', 'toolu_2'].map(id => ({ type: 'tool_result', tool_use_id: id })),
    })

    const calls = ['call_a', 'call_b'].map(id => ({
      id,
      type: 'function',
      function: { name: 'wait', arguments: '{"seconds":0}' },
    }))
    const chat = completionOf([{ tool_calls: calls }])
    remote.queue(stream(completionFrames(chat)), stream(chatFrames(['Done.'], { usage: true })))
    expect((await ran('openai/gpt-4.1-mini', { tools: ['wait'] })).run).toMatchObject({ output: { result: 'Done.' } })
    expect(sent(remote.seen[3]).messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: null, tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_a' },
      { role: 'tool', tool_call_id: 'call_b' },
    ])
  })

  it('tells the model when the arguments of its call are no JSON object, and goes on', async () => {
    const { remote, configure, ran } = await fixture()
    await configure('anthropic')
    await configure('openai')
    const broken = { type: 'tool_use', id: 'toolu_1', name: 'wait', input: '{"seconds": oops' }
    remote.queue(stream(messageFrames(messageOf([broken]))), stream(messagesFrames(['Sorry.'])))
    expect((await ran('anthropic/claude-haiku-4-5', { tools: ['wait'] })).run).toMatchObject({
      status: 'succeeded',
      output: { result: 'Sorry.' },
    })
    const call = { id: 'call_a', type: 'function', function: { name: 'wait', arguments: '["seconds"]' } }
    remote.queue(stream(completionFrames(completionOf([{ tool_calls: [call] }]))), stream(chatFrames(['Sorry.'])))
    expect((await ran('openai/gpt-4.1-mini', { tools: ['wait'] })).run).toMatchObject({ output: { result: 'Sorry.' } })
    for (const at of [1, 3]) {
      expect(JSON.stringify(sent(remote.seen[at]).messages)).toContain('these arguments are not a JSON object')
      expect(JSON.stringify((sent(remote.seen[at]).messages as object[]).at(-1))).toContain('was not called')
    }
  })

  it('gives tools names that providers take, and finds them again by these', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai')
    await json(201, 'POST', '/v1/agents', { name: 'my.child', manifest: { model: 'demo/echo' } })
    const call = { id: 'c', type: 'function', function: { name: 'agent__my_child', arguments: '{"prompt":"hi"}' } }
    remote.queue(stream(completionFrames(completionOf([{ tool_calls: [call] }]))), stream(chatFrames(['Done.'])))
    const { run } = await ran('openai/gpt-4.1-mini', { subAgents: [{ name: 'my.child' }] })
    expect(run).toMatchObject({ status: 'succeeded' })
    expect(JSON.stringify(sent(remote.seen[1]).messages)).toContain('You said: hi')
  })

  it('ends with a receipt where a provider names its model with half of a surrogate pair', async () => {
    const { configure, remote, ran, json } = await fixture()
    await configure('openai-compatible')
    remote.always(stream(chatFrames(['Hi.'], { usage: true, model: '\ud800' })))
    const { run } = await ran('openai-compatible/a')
    expect(run).toMatchObject({ status: 'succeeded', model: 'openai-compatible/\ufffd' })
    const { payload } = await json<{ payload: object }>(200, 'GET', `/v1/runs/${run.id}/receipt`)
    expect(payload).toMatchObject({ models: ['openai-compatible/\ufffd'] })
  })

  it('prices by the tenant first, and calls a model without a price free and says so', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai-compatible')
    remote.always(stream(chatFrames(['Hi.'], { usage: true, model: 'llama' })))
    const free = await ran('openai-compatible/local/llama')
    expect(free.run).toMatchObject({ tokensIn: 1200, costUsd: 0 })
    const unpriced = await json<JournalExport>(200, 'GET', `/v1/runs/${free.run.id}/journal`)
    expect(unpriced.events.at(-1)?.meta).toMatchObject({ unpriced: true, costUsd: 0 })
    const prices = { 'openai-compatible/local/llama': { inPerMTok: 2, outPerMTok: 10.5 } }
    const settings = { aliases: {}, prices, windows: { 'openai-compatible/local/llama': 8192 } }
    expect(await json(200, 'PUT', '/v1/settings/models', settings)).toEqual(settings)
    expect(await json(200, 'GET', '/v1/settings/models')).toEqual(settings)
    const priced = await ran('openai-compatible/local/llama')
    expect(priced.run.costUsd).toBe(0.002925)
    const refused = { prices: { 'openai/x': { inPerMTok: 0.0000001, outPerMTok: 1 } } }
    expect(await json(400, 'PUT', '/v1/settings/models', refused)).toMatchObject({
      details: [{ path: 'prices.openai/x', message: expect.stringContaining('at most 6 decimals') }],
    })
  })
})

describe('choosing a model', () => {
  it('is the demo while there is no provider, and never where that is forbidden', async () => {
    const made = await fixture()
    expect((await made.ran('auto')).run).toMatchObject({ status: 'succeeded', model: 'demo/echo' })
    expect((await made.ran('chat-small')).run).toMatchObject({ model: 'demo/echo' })
    expect((await made.ran('openai/gpt-5')).run).toMatchObject({ error: { code: 'model_unconfigured' } })
    const strict = await fixture({ demo: false })
    for (const model of ['auto', 'chat_large', 'demo/echo']) {
      expect((await strict.ran(model)).run).toMatchObject({ status: 'failed', error: { code: 'model_unconfigured' } })
    }
  })

  it('is the first candidate whose provider is configured, and the demo no more', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai')
    remote.always(stream(chatFrames(['Hi.'], { usage: true })))
    await ran('auto')
    await ran('chat-edge')
    await json(200, 'PUT', '/v1/settings/models', {
      aliases: { auto: ['anthropic/claude-sonnet-5', 'openai/gpt-x', 'openai/gpt-y'], 'code-small': [] },
    })
    await ran('auto')
    expect(remote.seen.map(seen => sent(seen).model)).toEqual(['gpt-5.4', 'gpt-5-nano', 'gpt-x'])
    expect((await ran('code-small')).run).toMatchObject({ error: { code: 'model_unconfigured' } })
    expect((await ran('google/gemini-2.5-pro')).run).toMatchObject({ error: { code: 'model_unconfigured' } })
  })

  it('is the router of this process for auto, whose receipt is named in the journal', async () => {
    const upstream = await fixture()
    upstream.remote.always(answer(200, JSON.stringify(chatAnswer('Routed.'))))
    const router = createRouter({
      config: `
price = [{ model = "small/tiny", input_per_mtok = 1, output_per_mtok = 2 }]
provider = [{ id = "small", dialect = "chat", base_url = "${upstream.remote.origin}/v1", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["small/tiny"]
gates = ["non-empty"]
`,
    })
    open.push(router)
    const sessions: (string | null)[] = []
    const routerFetch = (request: Request) => {
      sessions.push(request.headers.get('x-router-session'))
      return router.fetch(request)
    }
    const { ran, json } = await fixture({ routerFetch })
    expect(await json(200, 'GET', PROVIDERS)).toMatchObject([{ provider: 'router', source: 'environment' }])
    const { run } = await ran('auto')
    // Without a name of its own, each run with this prompt would be a turn of one session, and on the account of its cap.
    const { run: other } = await ran('auto')
    const { id } = await json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    for (const content of ['One.', 'Two.']) await json(200, 'POST', `/v1/sessions/${id}/messages`, { content })
    expect(sessions).toEqual([run.id, other.id, id, id])
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'Routed.' } })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.at(-1)?.meta).toMatchObject({
      provider: 'router',
      routerTraceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(run.costUsd).toBe(0.0013)
  })

  it('says which gates of the router an answer did not pass, also where its head went out early', async () => {
    const { remote } = await fixture()
    const router = gatedRouter(remote.origin, ['tiny'])
    open.push(router)
    const { ran, json } = await fixture({ routerFetch: router.fetch })
    const bad = answer(200, JSON.stringify(chatAnswer('no JSON')))
    for (const lateMs of [0, 1500]) {
      remote.queue((...call) => void setTimeout(() => bad(...call), lateMs))
      const { run } = await ran('auto')
      expect(run).toMatchObject({ status: 'succeeded', costUsd: 0.0013 })
      const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
      expect(events.at(-1)?.meta.gatesFailed).toEqual(['json-valid'])
    }
    remote.queue(answer(200, JSON.stringify(chatAnswer('{}'))))
    const { run } = await ran('auto')
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.at(-1)?.meta).not.toHaveProperty('gatesFailed')
  })

  it('is charged with all that the router paid for a call: rungs that failed, an error, an answer whose head went out early', async () => {
    const upstream = await fixture()
    const { remote } = upstream
    const router = gatedRouter(remote.origin, ['tiny', 'large'], 'on_exhausted = "error"')
    open.push(router)
    const { ran, json } = await fixture({ routerFetch: router.fetch })
    const both = 0.0013 + 0.013
    const [bad, good] = ['no JSON', '{}'].map(text => JSON.stringify(chatAnswer(text)))

    remote.queue(answer(200, bad!), answer(200, good!))
    expect((await ran('auto')).run).toMatchObject({ status: 'succeeded', costUsd: both })

    remote.always(answer(200, bad!))
    const { run } = await ran('auto', { retry: { maxAttempts: 1 } })
    expect(run).toMatchObject({ status: 'failed', costUsd: both })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.at(-1)?.meta).toMatchObject({ costUsd: both, provider: 'router' })

    remote.queue(answer(200, bad!), (...call) => void setTimeout(() => answer(200, good!)(...call), 1500))
    expect((await ran('auto')).run).toMatchObject({ status: 'succeeded', costUsd: both })

    // Neither rung could be called, so the call was free, and is made again for longer than one that may be billed.
    remote.queue(...Array.from({ length: 4 }, () => answer(503, '{}')), answer(200, good!))
    const waited = await ran('auto', { retry: { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 50 } })
    expect(waited.run).toMatchObject({ status: 'succeeded', costUsd: 0.0013 })
  })

  it('waits for a router that says that a call was free, also where the head of its answer was out before', async () => {
    const { remote } = await fixture()
    const router = gatedRouter(remote.origin, ['tiny'])
    open.push(router)
    const { ran, json } = await fixture({ routerFetch: router.fetch })
    const late = (...call: Parameters<typeof silence>) => void setTimeout(() => answer(503, '{}')(...call), 1200)
    remote.queue(late, late, answer(200, JSON.stringify(chatAnswer('{}'))))
    const { run } = await ran('auto', { retry: { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 50 } })
    expect(run).toMatchObject({ status: 'succeeded', costUsd: 0.0013 })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    const retried = events.filter(({ kind }) => kind === 'step_retrying')
    expect(retried.map(({ payload }) => payload.unbilled)).toEqual([true, true])
  })

  it('counts a call that its router turned away as billed, where a rung before that may bill it', async () => {
    const { remote } = await fixture()
    const router = gatedRouter(remote.origin, ['tiny', 'large'], '[limits]\nfirst_byte_ms = 400')
    open.push(router)
    const { ran, json } = await fixture({ routerFetch: router.fetch })
    remote.queue(silence, answer(503, '{}'), answer(200, JSON.stringify(chatAnswer('{}'))))
    const { run } = await ran('auto')
    expect(run.status).toBe('succeeded')
    expect(run.costUsd).toBeGreaterThan(0.0013)
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    const retried = events.filter(({ kind }) => kind === 'step_retrying')
    expect(retried.map(({ payload }) => [payload.error, payload.unbilled])).toEqual([
      [expect.stringContaining('router answered 503'), undefined],
    ])
  })
})

describe('a provider that fails', () => {
  it('is asked again after a 429, as late as it wishes, with the pause in the journal', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai')
    const busy = JSON.stringify({ error: { message: 'slow down', type: 'rate_limit_error' } })
    remote.queue(answer(429, busy, { 'retry-after-ms': '7' }), stream(chatFrames(['Hi.'], { usage: true })))
    const { run } = await ran('openai/gpt-4.1-mini')
    expect(run).toMatchObject({ status: 'succeeded' })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.find(({ kind }) => kind === 'step_retrying')?.payload).toMatchObject({
      attempt: 1,
      of: 2,
      code: 'rate_limited',
      delayMs: 7,
      error: 'openai answered 429: slow down',
    })
    expect(remote.seen.map(seen => header(seen, 'idempotency-key'))).toEqual([1, 2].map(n => `${run.id}:model-1:${n}`))
  })

  it('is waited for where it cannot be reached or turns the call away, which costs nothing, and not for long where it may be billed', async () => {
    const { remote, configure, ran, json } = await fixture()
    const retry = { maxAttempts: 2, backoffMs: 1, maxBackoffMs: 50, jitter: false }
    const busy = answer(529, JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }))
    const broken = answer(500, JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'broken' } }))
    await configure('anthropic')
    remote.queue(busy, busy, broken, busy, stream(messagesFrames(['Hello.'])))
    const { run } = await ran('anthropic/claude-haiku-4-5', { retry })
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'Hello.' } })
    const { events } = await json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    const retried = events.filter(({ kind }) => kind === 'step_retrying').map(({ payload }) => payload)
    expect(retried.map(({ attempt, of, unbilled }) => [attempt, of, unbilled])).toEqual([
      [1, 10, true],
      [2, 10, true],
      [3, 4, undefined],
      [4, 10, true],
    ])
    expect(JSON.stringify(await json(200, 'GET', `/v1/runs/${run.id}/receipt`))).toContain(run.id)

    remote.queue(busy)
    remote.always(broken)
    expect((await ran('anthropic/claude-haiku-4-5', { retry })).run).toMatchObject({ status: 'failed' })
    expect(remote.seen).toHaveLength(8)

    for (const [more, calls] of [
      [{ maxAttempts: 1 }, 1],
      [{ unbilledAttempts: 4 }, 4],
    ] as const) {
      const before = remote.seen.length
      remote.always(busy)
      expect((await ran('anthropic/claude-haiku-4-5', { retry: { ...retry, ...more } })).run.status).toBe('failed')
      expect(remote.seen).toHaveLength(before + calls)
    }
  })

  const TRANSIENT = [408, 409, 425, 429, 500, 502, 503, 504, 529]
  it.each([...TRANSIENT, 400, 401, 403, 404, 413, 422])(
    'is asked again after a %i only where that may help',
    async status => {
      const { remote, configure, ran } = await fixture()
      await configure('anthropic')
      remote.always(answer(status, JSON.stringify({ type: 'error', error: { type: 'x', message: 'no' } })))
      const { run } = await ran('anthropic/claude-haiku-4-5')
      expect(run).toMatchObject({
        status: 'failed',
        error: { code: 'model_error', message: `anthropic answered ${status}: no` },
      })
      expect(remote.seen).toHaveLength(TRANSIENT.includes(status) ? 2 : 1)
    },
  )

  it('is asked again when the connection breaks, before or inside its answer', async () => {
    const { remote, configure, ran } = await fixture()
    await configure('anthropic')
    const frames = messagesFrames(['Hel', 'lo.'])
    for (const broken of [
      reset,
      stream(frames.slice(0, 3)),
      stream([event('error', { error: { type: 'overloaded_error', message: 'busy' } })]),
    ]) {
      remote.queue(broken, stream(frames))
      expect((await ran('anthropic/claude-haiku-4-5')).run).toMatchObject({ output: { result: 'Hello.' } })
    }
    expect(remote.seen).toHaveLength(6)
  })

  it('is given up when it is silent for too long, before or inside its answer', async () => {
    const { remote, configure, ran } = await fixture({ providerDeadlines: { firstByteMs: 60, idleMs: 60 } })
    await configure('openai')
    remote.queue(silence, response => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(chatFrames(['Hel'])[0])
    })
    const { run } = await ran('openai/gpt-4.1-mini')
    expect(run.error?.message).toBe('openai said nothing more for 60 ms')
    await Promise.all(remote.seen.map(({ aborted }) => aborted))
    expect(remote.seen).toHaveLength(2)
  })

  it('is given up when its stream stays open and says nothing, and not while it does', async () => {
    const { remote, configure, ran } = await fixture({ providerDeadlines: { contentMs: 1000 } })
    await configure('openai')
    await configure('anthropic')
    const empty = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    const open = (response: ServerResponse, sign: string) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const beat = setInterval(() => response.write(sign), 20)
      response.on('close', () => clearInterval(beat))
    }
    const once = { retry: { maxAttempts: 1 } }
    for (const [provider, model, sign] of [
      ['openai', 'gpt-4.1-mini', ': PROCESSING\n\n'],
      ['openai', 'gpt-4.1-mini', empty],
      ['anthropic', 'claude-haiku-4-5', 'event: ping\ndata: {"type":"ping"}\n\n'],
    ] as const) {
      remote.queue(response => open(response, sign))
      const { run } = await ran(`${provider}/${model}`, once)
      expect(run.error?.message).toBe(`${provider} kept its answer open and said nothing for 1000 ms`)
      await remote.seen.at(-1)?.aborted
    }
    const words = chatFrames(['It ', 'takes ', 'its ', 'time.'])
    remote.queue(response => {
      open(response, empty)
      const more = () => {
        const frame = words.shift()
        if (frame === undefined) return response.end()
        response.write(frame)
        setTimeout(more, 250)
      }
      more()
    })
    expect((await ran('openai/gpt-4.1-mini', once)).run).toMatchObject({ output: { result: 'It takes its time.' } })
  })

  it('does not follow a provider to another origin, and sends it nothing', async () => {
    const { remote, configure, ran } = await fixture()
    const other = await fixture()
    await configure('openai')
    remote.always(answer(307, '', { location: `${other.remote.origin}/v1/chat/completions` }))
    const { run } = await ran('openai/gpt-4.1-mini')
    expect([run.error?.message, run.tokensIn]).toEqual([expect.stringContaining('redirect to another origin'), 0])
    expect([remote.seen.length, other.remote.seen.length]).toEqual([1, 0])
    // This one may have answered, and billed, what it leads away from.
    remote.always(answer(303, '', { location: '/v1/answers/1' }))
    expect((await ran('openai/gpt-4.1-mini')).run.tokensIn).toBeGreaterThan(0)
    expect(remote.seen.length).toBe(2)
  })

  it('hears of a cancelled run within two seconds', async () => {
    const { remote, configure, json } = await fixture()
    await configure('openai')
    const called = Promise.withResolvers<void>()
    remote.always(() => called.resolve())
    await json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-4.1-mini' } })
    const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'x' } })
    await called.promise
    const before = performance.now()
    expect(await json(200, 'POST', `/v1/runs/${id}/cancel`)).toMatchObject({ status: 'cancelled' })
    await remote.seen[0]?.aborted
    expectWithin(performance.now() - before, 2000)
  })

  it('is refused to a run whose provider was taken away in the meantime', async () => {
    const { remote, configure, ran, json } = await fixture()
    await configure('openai')
    const call = { id: 'c', type: 'function', function: { name: 'wait', arguments: '{"seconds":0}' } }
    remote.queue(async (response, seen, request) => {
      await json(204, 'DELETE', `${PROVIDERS}/openai`)
      await stream(completionFrames(completionOf([{ tool_calls: [call] }])))(response, seen, request)
    })
    const { run } = await ran('openai/gpt-4.1-mini', { tools: ['wait'] })
    expect(run).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('not configured') } })
  })
})

describe('secrets', () => {
  it('are listed by name, replaced and removed, and never come out', async () => {
    const { json, call } = await fixture()
    const saved = await call('PUT', '/v1/secrets/DB_PASSWORD', { value: CANARY })
    expect([saved.status, await saved.json()]).toEqual([200, { name: 'DB_PASSWORD', updatedAt: expect.any(String) }])
    await json(200, 'PUT', '/v1/secrets/DB_PASSWORD', { value: 'other-value' })
    expect(await json(200, 'GET', '/v1/secrets')).toEqual([{ name: 'DB_PASSWORD', updatedAt: expect.any(String) }])
    await json(400, 'PUT', '/v1/secrets/-bad', { value: 'x' })
    await json(400, 'PUT', '/v1/secrets/empty', { value: '' })
    await json(204, 'DELETE', '/v1/secrets/DB_PASSWORD')
    await json(404, 'DELETE', '/v1/secrets/DB_PASSWORD')
  })
})

describe('a key', () => {
  it('stands in clear in no file, no answer and no log line, whatever the provider does with it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-canary-'))
    open.push({ close: () => rm(folder, { recursive: true, force: true }) })
    const made = await fixture({ url: join(folder, 'waybill.db') })
    const { remote, configure, ran, json } = made
    const said: unknown[] = []
    await configure('anthropic', { headers: { 'x-extra': `extra-${CANARY}` } })
    said.push(await json(200, 'PUT', '/v1/secrets/TOKEN', { value: CANARY }))
    const echo = JSON.stringify({ error: { message: `your key ${CANARY} and extra-${CANARY}` } })
    remote.queue(
      answer(401, echo),
      answer(500, echo),
      answer(500, echo),
      stream([event('error', { error: { message: echo } })]),
      reset,
    )
    for (let n = 0; n < 3; n++) said.push(await ran('anthropic/claude-haiku-4-5'))
    remote.always(answer(401, echo))
    said.push(await json(200, 'POST', `${PROVIDERS}/anthropic/test`, {}))
    said.push(
      await json(200, 'GET', PROVIDERS),
      await json(200, 'GET', '/v1/secrets'),
      await json(200, 'GET', '/v1/runs'),
    )
    for (const { id } of await json<Run[]>(200, 'GET', '/v1/runs'))
      said.push(await json(200, 'GET', `/v1/runs/${id}/journal`))
    expect(remote.seen.length).toBeGreaterThan(4)
    expect(JSON.stringify(said)).toContain('[redacted]')
    expect(JSON.stringify(said)).not.toContain(CANARY)
    expect(made.lines.join('\n')).not.toContain(CANARY)
    const files = await readdir(folder)
    expect(files).toContain('waybill.db')
    for (const file of files) {
      const bytes = await readFile(join(folder, file))
      expect([file, bytes.includes(CANARY), bytes.includes(CANARY.slice(3, 20))]).toEqual([file, false, false])
    }
  })

  it('does not open for another tenant or another provider, even when its row is moved there', async () => {
    const { db, configure, ran, remote } = await fixture()
    await configure('anthropic')
    await configure('openai')
    await db.execute(
      "update providers set sealed_key = (select sealed_key from providers where provider = 'anthropic') where provider = 'openai'",
    )
    const { run } = await ran('openai/gpt-4.1-mini')
    expect(run).toMatchObject({
      status: 'failed',
      error: { message: 'the stored key of openai cannot be opened: save it again' },
    })
    expect(remote.seen).toEqual([])
  })

  it('is read again where the store did not answer: that ends no run', async () => {
    const { db, configure, ran, remote } = await fixture()
    await configure('anthropic')
    remote.always(answer(200, JSON.stringify(messagesAnswer('Whole.'))))
    const { execute } = db
    let cut = 2
    db.execute = async statement => {
      const isRead = typeof statement === 'object' && statement.sql.endsWith('tenant_id = ? and provider = ?')
      if (!isRead || cut-- <= 0) return execute(statement)
      return markUnavailable(() => Promise.reject(new TypeError('fetch failed')))
    }
    const { run } = await ran('claude-haiku-4-5')
    expect(cut).toBeLessThan(1)
    expect(run).toMatchObject({ status: 'succeeded' })
  })
})

it('a whole answer of the messages dialect is as good as a streamed one', async () => {
  const { remote, configure, ran } = await fixture()
  await configure('anthropic')
  remote.always(answer(200, JSON.stringify(messagesAnswer('Whole.'))))
  expect((await ran('claude-haiku-4-5')).run).toMatchObject({ output: { result: 'Whole.' }, tokensIn: 13_100 })
})

it('a host that refuses to be asked for a count is asked without, once and then always, and its count is taken', async () => {
  const { remote, configure, ran, json, call } = await fixture()
  await configure('openai-compatible:mistral')
  const detail = [
    {
      type: 'extra_forbidden',
      loc: ['body', 'stream_options', 'include_usage'],
      msg: 'Extra inputs are not permitted',
    },
  ]
  const refusal = JSON.stringify({ object: 'error', message: { detail }, type: 'invalid_request_error', code: null })
  remote.always((response, seen, request) =>
    (sent(seen).stream_options === undefined ? answer(200, JSON.stringify(chatAnswer('hello'))) : answer(422, refusal))(
      response,
      seen,
      request,
    ),
  )
  const { run } = await ran('openai-compatible:mistral/mistral-small-latest')
  expect(run).toMatchObject({ status: 'succeeded' })
  expect(run.tokensIn).toBeGreaterThan(0)
  expect(remote.seen.map(seen => 'stream_options' in sent(seen))).toEqual([true, false])
  const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'again' } })
  await (await call('GET', `/v1/runs/${id}/events`)).text()
  expect(remote.seen.map(seen => 'stream_options' in sent(seen))).toEqual([true, false, false])
})

it('a model that knows the limit by its other name alone is asked with that, once and then always', async () => {
  const { remote, configure, ran, json, events } = await fixture()
  await configure('openai-compatible:azure')
  const message =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
  const error = { message, type: 'invalid_request_error', param: 'max_tokens', code: 'unsupported_parameter' }
  remote.always((response, seen, request) =>
    (sent(seen).max_tokens === undefined
      ? answer(200, JSON.stringify(chatAnswer('hello')))
      : answer(400, JSON.stringify({ error })))(response, seen, request),
  )
  expect((await ran('openai-compatible:azure/gpt-5-mini')).run).toMatchObject({ status: 'succeeded' })
  const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'again' } })
  await (await events(`/v1/runs/${id}/events`)).all()
  const limits = remote.seen.map(seen => [sent(seen).max_tokens, sent(seen).max_completion_tokens])
  const limit = limits[0]![0]
  expect(limit).toBeGreaterThan(0)
  expect(limits).toEqual([
    [limit, undefined],
    [undefined, limit],
    [undefined, limit],
  ])
})
