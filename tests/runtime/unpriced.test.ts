import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import type { Forecast, UsageItem } from '../../shared/wire/runtime/usage.ts'
import { chatAnswer } from '../upstream/answers.ts'
import { endedRun, type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const MODEL = 'openai-compatible/m'
const PRICED = { prices: { [MODEL]: { inPerMTok: 1, outPerMTok: 2 } } }
const HARD = { maxCostUsdPerDay: 0.001 }

async function fixture(model = MODEL): Promise<ProviderFixture> {
  const made = await providerFixture()
  open.push(made)
  await made.configure('openai-compatible')
  made.remote.always((response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(chatAnswer('Hello.', 'm')))
  })
  await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model, limits: { maxOutputTokens: 64 } } })
  return made
}

const make = ({ call }: ProviderFixture) => call('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'Hi' } })
const forecast = ({ json }: ProviderFixture) =>
  json<Forecast>(200, 'POST', '/v1/runs/forecast', { agentName: 'worker', input: { prompt: 'Hi' } })

describe('a hard limit of cost on a model that has no price', () => {
  it.each([HARD, { maxCostUsdPerRun: 0.5 }])('is refused with the way to give it one: %j', async budget => {
    const on = await fixture()
    const refused = await on.call('PUT', '/v1/agents/worker/budget', budget)
    expect(refused.status).toBe(400)
    const { error, details } = (await refused.json()) as { error: string; details: { path: string }[] }
    expect(error).toContain(MODEL)
    expect(error).toContain('PUT /v1/settings/models')
    expect(details).toMatchObject([{ path: Object.keys(budget)[0] }])
    expect((await on.call('GET', '/v1/agents/worker/budget')).status).toBe(404)
    // A soft one, one of tokens, and a hard one once there is a price.
    await on.json(200, 'PUT', '/v1/agents/worker/budget', { ...budget, hardFail: false })
    await on.json(200, 'PUT', '/v1/agents/worker/budget', { maxTokensPerDay: 1000 })
    await on.json(200, 'PUT', '/v1/settings/models', PRICED)
    await on.json(200, 'PUT', '/v1/agents/worker/budget', budget)
  })

  it('is refused when the model is published under it', async () => {
    const on = await fixture('demo/echo')
    await on.json(200, 'PUT', '/v1/agents/worker/budget', HARD)
    for (const path of ['/v1/agents', '/v1/agents/worker/versions']) {
      const body = { ...(path === '/v1/agents' && { name: 'worker' }), manifest: { model: MODEL } }
      const refused = await on.call('POST', path, body)
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({
        error: expect.stringContaining(MODEL),
        details: [{ path: 'manifest.model' }],
      })
    }
    await on.json(200, 'PUT', '/v1/settings/models', PRICED)
    await on.json(201, 'POST', '/v1/agents/worker/versions', { manifest: { model: MODEL } })
  })

  it('lets no run and no call through where the model came under it later', async () => {
    const on = await fixture('chat-small')
    const aliases = (model: string) => ({ aliases: { 'chat-small': [model] } })
    await on.json(200, 'PUT', '/v1/settings/models', { ...PRICED, ...aliases(MODEL) })
    await on.json(200, 'PUT', '/v1/agents/worker/budget', { maxCostUsdPerDay: 1 })
    expect(await endedRun(on, ((await (await make(on)).json()) as Run).id)).toMatchObject({ status: 'succeeded' })

    // The alias moves to a model without a price: what comes now is refused, and what was admitted before is stopped.
    const seen = on.remote.seen.length
    await on.json(200, 'PUT', '/v1/settings/models', aliases(MODEL))
    expect(await forecast(on)).toMatchObject({ estimatedCostUsd: null, unpriced: true, wouldExceedBudget: true })
    const answer = await make(on)
    expect(answer.status).toBe(402)
    expect(await answer.json()).toMatchObject({
      code: 'budget_exceeded',
      dimension: 'costPerDay',
      limit: 1,
      used: 0,
      error: expect.stringContaining('PUT /v1/settings/models'),
    })
    expect(on.remote.seen).toHaveLength(seen)
  })

  it('stops a run before its next call where the price went away in the middle of it', async () => {
    const on = await fixture()
    await on.json(200, 'PUT', '/v1/settings/models', PRICED)
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: MODEL, tools: ['wait_signal'] } })
    await on.json(200, 'PUT', '/v1/agents/worker/budget', { maxCostUsdPerDay: 1 })
    const call = { id: 'c1', type: 'function', function: { name: 'wait_signal', arguments: '{"name": "go"}' } }
    const [choice] = chatAnswer('', 'm').choices
    on.remote.queue((response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const message = { ...choice!.message, tool_calls: [call] }
      response.end(
        JSON.stringify({ ...chatAnswer('', 'm'), choices: [{ ...choice, message, finish_reason: 'tool_calls' }] }),
      )
    })
    const { id } = (await (await make(on)).json()) as Run
    const events = await on.events(`/v1/runs/${id}/events`)
    for (;;) {
      const event = await events.next()
      if (event?.event === 'step_started' && JSON.stringify(event.data).includes('signal')) break
    }
    await on.json(200, 'PUT', '/v1/settings/models', {})
    await on.call('POST', `/v1/runs/${id}/signals/go`, {})
    const run = await endedRun(on, id)
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'budget_exceeded', message: expect.stringContaining(MODEL) },
    })
    expect(on.remote.seen).toHaveLength(1)
  })
})

describe('a model that has no price', () => {
  it('is marked on the run and in usage, and no forecast calls it free', async () => {
    const on = await fixture()
    for (let n = 0; n < 3; n++) {
      const run = await endedRun(on, ((await (await make(on)).json()) as Run).id)
      expect(run).toMatchObject({ status: 'succeeded', costUsd: 0, unpricedCalls: 1 })
    }
    const [usage] = await on.json<UsageItem[]>(200, 'GET', '/v1/usage')
    expect(usage).toMatchObject({ costUsd: 0, unpricedCalls: 3 })
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs')).toMatchObject(
      [1, 1, 1].map(unpricedCalls => ({ unpricedCalls })),
    )
    expect(await on.json(200, 'GET', '/v1/overview')).toMatchObject({ total: { costUsd: 0 }, unpricedCalls: 3 })
    const metrics = await (await on.call('GET', '/metrics')).text()
    expect(metrics).toMatch(/^waybill_unpriced_calls_total\{.*\} 3$/m)
    const made = await forecast(on)
    expect(made).toMatchObject({ estimatedCostUsd: null, unpriced: true, wouldExceedBudget: false, sampleSize: 3 })
    expect(made).not.toHaveProperty('p90CostUsd')
  })

  it('is marked on the reply and the end of a turn, and on its session', async () => {
    const on = await fixture()
    const { id } = await on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    for (const unpricedCalls of [1, 2]) {
      const reply = await on.json(200, 'POST', `/v1/sessions/${id}/messages`, { content: 'Hi' })
      expect(reply).toMatchObject({ costUsd: 0, unpricedCalls: 1 })
      expect(await on.json(200, 'GET', `/v1/sessions/${id}`)).toMatchObject({ costUsd: 0, unpricedCalls })
    }
    expect(await on.json(200, 'GET', '/v1/sessions')).toMatchObject([{ unpricedCalls: 2 }])
    const said = await (await on.events(`/v1/sessions/${id}/events?replay=1`)).next()
    expect(said).toMatchObject({ event: 'message_completed', data: { usage: { costUsd: 0, unpricedCalls: 1 } } })
    await on.json(200, 'PUT', '/v1/settings/models', PRICED)
    const reply = await on.json(200, 'POST', `/v1/sessions/${id}/messages`, { content: 'Hi' })
    expect(reply).not.toHaveProperty('unpricedCalls')
    expect(await on.json(200, 'GET', `/v1/sessions/${id}`)).toMatchObject({ unpricedCalls: 2 })
  })

  it('of a known price is not marked, and its cost is said by class', async () => {
    const on = await fixture()
    await on.json(200, 'PUT', '/v1/settings/models', PRICED)
    const run = await endedRun(on, ((await (await make(on)).json()) as Run).id)
    // 200 tokens in, 1,000 from the cache, 50 out; without a price of its own the cache costs what input does.
    expect(run).toMatchObject({ costUsd: 0.0013, cacheReadTokens: 1000 })
    expect(run.costByClass).toEqual({ inputUsd: 0.0002, cacheReadUsd: 0.001, cacheWriteUsd: 0, outputUsd: 0.0001 })
    expect(run).not.toHaveProperty('unpricedCalls')
    expect((await forecast(on)).estimatedCostUsd).toBeGreaterThan(0)
  })
})
