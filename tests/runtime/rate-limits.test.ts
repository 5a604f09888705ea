import { expect, it } from 'vitest'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import { chatFrames } from '../upstream/answers.ts'
import { answer, stream } from '../upstream/scripted.ts'
import { until } from './node-fixture.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

/** A provider that takes so many calls a second, and refuses the others as OpenAI does. */
function takes(remote: ProviderFixture['remote'], perSecond: number) {
  let [held, atMs] = [2, performance.now()]
  const seen = { taken: 0, refused: 0 }
  remote.always((response, one, request) => {
    const nowMs = performance.now()
    held = Math.min(2, held + ((nowMs - atMs) / 1000) * perSecond)
    atMs = nowMs
    if (held >= 1) {
      held--
      seen.taken++
      return stream(chatFrames(['fine'], { usage: true }))(response, one, request)
    }
    seen.refused++
    const message = `Rate limit reached for gpt-x on requests per min (RPM): Limit ${perSecond * 60}. Please try again later.`
    const error = { message, type: 'requests', param: null, code: 'rate_limit_exceeded' }
    return answer(429, JSON.stringify({ error }))(response, one, request)
  })
  return seen
}

const RETRY = { maxAttempts: 2, unbilledAttempts: 4, backoffMs: 50, maxBackoffMs: 500, jitter: true }

it('brings every run to its end where a provider takes fewer calls than there are runs', async () => {
  const on = await providerFixture()
  await on.configure('openai')
  const seen = takes(on.remote, 15)
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-x', retry: RETRY } })
  const ids = await Promise.all(
    Array.from({ length: 60 }, async () => (await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })).id),
  )
  await Promise.all(ids.map(async id => (await on.events(`/v1/runs/${id}/events`)).all()))
  const ended = await Promise.all(ids.map(id => on.json<Run>(200, 'GET', `/v1/runs/${id}`)))
  expect(ended.filter(({ status }) => status !== 'succeeded').map(({ error }) => error)).toEqual([])
  expect(seen.taken).toBe(60)
  expect(on.lines.filter(line => line.includes('wait for their turn'))).toHaveLength(1)
  await on.close()
}, 60_000)

/** What Google's address for OpenAI clients says where a quota is used up. */
const quotaOf = (quotaId: string, retryDelay: string) => {
  const details = [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
  ]
  const message = `You exceeded your current quota. Please retry in ${retryDelay}.`
  return answer(429, JSON.stringify([{ error: { code: 429, message, status: 'RESOURCE_EXHAUSTED', details } }]))
}

it('waits as long as Google says, and asks no more before', async () => {
  const on = await providerFixture()
  await on.configure('google')
  let until = 0
  on.remote.always((response, seen, request) => {
    until ||= performance.now() + 3000
    const early = performance.now() < until
    const script = early ? quotaOf('GenerateRequestsPerMinutePerProjectPerModel', '3s') : stream(chatFrames(['fine']))
    return script(response, seen, request)
  })
  const retry = { ...RETRY, maxBackoffMs: 10_000 }
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'google/gemini-3-flash', retry } })
  const runs = await Promise.all(
    Array.from({ length: 120 }, () => on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })),
  )
  await Promise.all(runs.map(async ({ id }) => (await on.events(`/v1/runs/${id}/events`)).all()))
  const ended = await Promise.all(runs.map(({ id }) => on.json<Run>(200, 'GET', `/v1/runs/${id}`)))
  expect(ended.filter(({ status }) => status !== 'succeeded').map(({ error }) => error)).toEqual([])
  // One for each place that runs are executed in, at most.
  expect(on.remote.seen.length).toBeLessThan(120 + 70)
  await on.close()
}, 60_000)

it.each([
  ['a quota of a day', 'google', quotaOf('GenerateRequestsPerDayPerProjectPerModel-FreeTier', '18s'), /current quota/],
  [
    'a wait of ten hours',
    'openai',
    answer(429, JSON.stringify({ error: { message: 'slow down' } }), { 'retry-after': '36000' }),
    /in 600 minutes: slow down/,
  ],
])(
  'holds no runs for %s',
  async (_, provider, refusal, words) => {
    const on = await providerFixture()
    await on.configure(provider)
    on.remote.always(refusal)
    const retry = { maxAttempts: 2, backoffMs: 10, maxBackoffMs: 60_000, jitter: false }
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: `${provider}/gemini-x`, retry } })
    const startedMs = performance.now()
    const runs = await Promise.all(
      Array.from({ length: 20 }, () => on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })),
    )
    await Promise.all(runs.map(async ({ id }) => (await on.events(`/v1/runs/${id}/events`)).all()))
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    const { status, error } = await on.json<Run>(200, 'GET', `/v1/runs/${runs[7]!.id}`)
    expect([status, error?.message]).toEqual(['failed', expect.stringMatching(words)])
    await on.close()
  },
  60_000,
)

it('lets a run that waits for its turn be cancelled, with no call of it on record', async () => {
  const on = await providerFixture()
  await on.configure('openai')
  const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  on.remote.always(answer(429, body, { 'retry-after': '30' }))
  const retry = { ...RETRY, maxAttempts: 1, unbilledAttempts: 1 }
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-x', retry } })
  const first = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
  await (await on.events(`/v1/runs/${first.id}/events`)).all()
  const second = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
  await until(
    async () => (await on.json<Run>(200, 'GET', `/v1/runs/${second.id}`)).status === 'running',
    'it has its place',
  )
  const parked = async () => (await on.json<Run>(200, 'GET', `/v1/runs/${second.id}`)).parked
  await until(async () => (await parked())?.reason === 'rate_limit', 'it says what it waits for')
  expect(Date.parse((await parked())?.until ?? '') - Date.now()).toBeGreaterThan(20_000)
  await on.json(200, 'POST', `/v1/runs/${second.id}/cancel`, {})
  await (await on.events(`/v1/runs/${second.id}/events`)).all()
  expect(await on.json<Step[]>(200, 'GET', `/v1/runs/${second.id}/steps`)).toEqual([])
  expect(on.remote.seen).toHaveLength(1)
  await on.close()
})

it('a drain lets a run that waits for its turn go at once', async () => {
  const on = await providerFixture()
  await on.configure('openai')
  const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  on.remote.always(answer(429, body, { 'retry-after': '30' }))
  const retry = { ...RETRY, maxAttempts: 1, unbilledAttempts: 1 }
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-x', retry } })
  const first = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
  await (await on.events(`/v1/runs/${first.id}/events`)).all()
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
  const run = () => on.json<Run>(200, 'GET', `/v1/runs/${id}`)
  await until(async () => (await run()).parked?.reason === 'rate_limit', 'it waits')
  on.runtime.drain()
  const startedMs = performance.now()
  await on.runtime.settled(20_000)
  expect(performance.now() - startedMs).toBeLessThan(5000)
  expect(await run()).toMatchObject({ status: 'running' })
  expect(await run()).not.toHaveProperty('parked')
  await on.close()
}, 60_000)

it('a drain waits for no pause between two attempts', async () => {
  const on = await providerFixture()
  await on.configure('openai')
  const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  on.remote.always(answer(429, body, { 'retry-after': '30' }))
  const retry = { ...RETRY, maxBackoffMs: 60_000 }
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-x', retry } })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
  await until(
    async () => JSON.stringify(await on.json(200, 'GET', `/v1/runs/${id}/journal`)).includes('step_retrying'),
    'it was refused',
  )
  on.runtime.drain()
  const startedMs = performance.now()
  await on.runtime.settled(20_000)
  expect(performance.now() - startedMs).toBeLessThan(5000)
  expect(await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'running' })
  await on.close()
}, 60_000)

it('asks the next candidate of an alias at once, and waits only where all of them are limited', async () => {
  const on = await providerFixture()
  await on.configure('openai')
  await on.json(200, 'PUT', '/v1/settings/models', { aliases: { auto: ['openai/gpt-x', 'openai/gpt-y'] } })
  const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  const limited = new Set(['gpt-x'])
  on.remote.always((response, seen, request) => {
    const { model } = JSON.parse(seen.body.toString()) as { model: string }
    const refuse = answer(429, body, { 'retry-after': '4' })
    const script = limited.has(model) ? refuse : stream(chatFrames(['fine'], { usage: true }))
    return script(response, seen, request)
  })
  const run = async () => {
    const startedMs = performance.now()
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker' })
    await (await on.events(`/v1/runs/${id}/events`)).all()
    const { status } = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    return { status, tookMs: performance.now() - startedMs }
  }
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'auto', retry: RETRY } })
  for (const { status, tookMs } of [await run(), await run()]) {
    expect(status).toBe('succeeded')
    expect(tookMs).toBeLessThan(3500)
  }
  limited.add('gpt-y')
  setTimeout(() => limited.clear(), 1000)
  const waited = await run()
  expect(waited.status).toBe('succeeded')
  expect(waited.tookMs).toBeGreaterThan(1000)
  await on.close()
})
