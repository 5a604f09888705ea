import { afterEach, expect, it } from 'vitest'
import type { ModelAnswer, ModelCall, ModelRequest } from '../../runtime/execution/models/model.ts'
import type { Agent, AgentVersion } from '../../shared/wire/runtime/agent.ts'
import { isTerminal, type Run, type Step } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { type Api, api } from './api.ts'
import { until } from './node-fixture.ts'

let on: Api
/** When the slow model answers. */
let answers: PromiseWithResolvers<void>
afterEach(() => on.close())

interface Asked {
  model: string
  key: string
  request: ModelRequest
}

/** A model whose first turn calls a tool that changes something, and whose second answers. */
async function service(): Promise<{ asked: Asked[]; fetched: string[] }> {
  answers = Promise.withResolvers<void>()
  const asked: Asked[] = []
  const fetched: string[] = []
  const answer = (model: string, more: Partial<ModelAnswer>): ModelAnswer => ({
    text: '',
    toolCalls: [],
    stop: 'end',
    provider: 'openai',
    model,
    spent: { tokensIn: 100, tokensOut: 5, costNano: model === 'openai/dear' ? 9000 : 1000 },
    ...more,
  })
  const askOf = (model: string) => async (request: ModelRequest, call: ModelCall) => {
    if (model === 'openai/slow') await answers.promise
    asked.push({ model, key: call.key, request: structuredClone(request) })
    const called = request.messages.some(({ role }) => role === 'tool')
    if (called) return answer(model, { text: `done by ${model}` })
    const post = { url: 'https://page.example.com/', method: 'POST', body: 'x' }
    return answer(model, {
      text: `${model} calls`,
      stop: 'tools',
      toolCalls: [{ id: 'c0', name: 'http_request', arguments: post }],
    })
  }
  on = await api({
    masterKey: new Uint8Array(32).fill(7),
    outbound: async ({ url }) => {
      fetched.push(url.href)
      return { status: 200, headers: {}, body: new TextEncoder().encode('ok'), truncated: false }
    },
    models: { find: async (_, model) => ({ id: model, ask: askOf(model) }) },
  })
  return { asked, fetched }
}

const ended = (id: string): Promise<Run> =>
  until(async () => {
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    return isTerminal(run.status) && run
  }, `run ${id} ends`)

async function original(): Promise<Run> {
  const egress = [{ host: 'page.example.com', methods: ['POST'] }]
  const manifest = { model: 'openai/cheap', systemPrompt: 'Be brief.', tools: ['http_request'], egress }
  await on.json(201, 'POST', '/v1/agents', { name: 'agent', manifest })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'agent', input: { prompt: 'Go' } })
  return ended(id)
}

async function otherVersion(changed: object): Promise<string> {
  const { manifest } = await on.json<Agent>(200, 'GET', '/v1/agents/agent')
  const body = { manifest: { ...manifest, ...changed }, promote: false }
  return (await on.json<AgentVersion>(201, 'POST', '/v1/agents/agent/versions', body)).id
}

it('asks another model what one step asked, makes no call, and costs what it costs, on a receipt of its own', async () => {
  const { asked, fetched } = await service()
  const source = await original()
  expect([source.status, asked.length, fetched.length]).toEqual(['succeeded', 2, 1])
  const versionId = await otherVersion({ model: 'openai/dear', systemPrompt: 'Be long.' })
  for (const [stepId, result, calls] of [
    ['model-1', 'openai/dear calls', 1],
    ['model-2', 'done by openai/dear', 0],
  ] as const) {
    asked.length = 0
    const path = `/v1/runs/${source.id}/fork`
    const { id } = await on.json<Run>(201, 'POST', path, { fromStepId: stepId, versionId, onlyStep: true })
    const trial = await ended(id)
    expect(trial).toMatchObject({
      status: 'succeeded',
      agentVersionId: versionId,
      forkedFrom: { runId: source.id, stepId, onlyStep: true },
      output: { result },
      costUsd: 0.000009,
      model: 'openai/dear',
    })
    expect(trial.output?.toolCalls).toHaveLength(calls)
    expect(asked.map(({ key }) => key)).toEqual([`${id}:${stepId}:1`])
    expect(asked[0]!.request.system).toBe('Be long.')
    // The conversation before the step is that of the run, word by word.
    const was = await on.json<StepRequest>(200, 'GET', `/v1/runs/${source.id}/steps/${stepId}/request`)
    expect(asked[0]!.request.messages).toHaveLength(was.request!.messageCount)
    const steps = await on.json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`)
    expect(steps.filter(({ copied }) => !copied).map(one => one.stepId)).toEqual([stepId])
    const told = await on.json<StepRequest>(200, 'GET', `/v1/runs/${id}/steps/${stepId}/request`)
    expect(told.request).toMatchObject({ exact: true, system: { text: 'Be long.' } })
    expect(told.request!.tools.map(({ name }) => name)).toEqual(['http_request'])
    const { payload } = await on.json<{ payload: object }>(200, 'GET', `/v1/runs/${id}/receipt`)
    expect(payload).toMatchObject({
      costUsd: 0.000009,
      agentVersionId: versionId,
      models: expect.arrayContaining(['openai/dear']),
    })
  }
  expect(fetched).toHaveLength(1)
  // No other run uses the version.
  expect((await on.json<Agent>(200, 'GET', '/v1/agents/agent')).currentVersionId).toBe(source.agentVersionId)
})

it('is refused by a budget that it would exceed, before a model is asked', async () => {
  const { asked } = await service()
  const source = await original()
  await on.json(200, 'PUT', '/v1/agents/agent/budget', { maxRunsPerDay: 1 })
  asked.length = 0
  const fork = { fromStepId: 'model-1', onlyStep: true }
  await on.json(402, 'POST', `/v1/runs/${source.id}/fork`, fork)
  expect(asked).toEqual([])
})

it('is refused where it would do more than ask a model, or something else than the step did', async () => {
  await service()
  const source = await original()
  const path = `/v1/runs/${source.id}/fork`
  for (const fromStepId of ['tool-1-1', 'model-9']) {
    const status = fromStepId === 'model-9' ? 404 : 400
    await on.json(status, 'POST', path, { fromStepId, onlyStep: true })
  }
  await on.json(201, 'POST', '/v1/agents', { name: 'another', manifest: { model: 'openai/cheap' } })
  const { currentVersionId } = await on.json<Agent>(200, 'GET', '/v1/agents/another')
  await on.json(404, 'POST', path, { fromStepId: 'model-1', versionId: currentVersionId, onlyStep: true })
  const session = await on.json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'another' })
  const turn = await on.json<{ turnId: string }>(200, 'POST', `/v1/sessions/${session.id}/messages`, { content: 'Hi' })
  await on.json(400, 'POST', `/v1/runs/${turn.turnId}/fork`, { fromStepId: 'model-1', onlyStep: true })
})

it('goes on with another version as a whole where no single step is asked for', async () => {
  const { fetched } = await service()
  const source = await original()
  const versionId = await otherVersion({ model: 'openai/dear' })
  const body = { fromStepId: 'model-2', versionId }
  const fork = await ended((await on.json<Run>(201, 'POST', `/v1/runs/${source.id}/fork`, body)).id)
  expect(fork).toMatchObject({ status: 'succeeded', output: { result: 'done by openai/dear' } })
  expect(fork.forkedFrom).toEqual({ runId: source.id, stepId: 'model-2' })
  expect(fetched).toHaveLength(1)
})

it('is retried as what it was', async () => {
  await service()
  const source = await original()
  const versionId = await otherVersion({ model: 'openai/slow' })
  const trial = { fromStepId: 'model-1', versionId, onlyStep: true }
  const { id } = await on.json<Run>(201, 'POST', `/v1/runs/${source.id}/fork`, trial)
  await on.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
  expect((await ended(id)).status).toBe('cancelled')
  answers.resolve()
  const again = await ended((await on.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})).id)
  expect(again).toMatchObject({ status: 'succeeded', output: { result: 'openai/slow calls' } })
})
