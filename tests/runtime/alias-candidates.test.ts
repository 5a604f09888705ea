import { afterEach, expect, it } from 'vitest'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { chatAnswer, chatFrames, messagesAnswer } from '../upstream/answers.ts'
import { answer, reset, type Script, type Seen, stream } from '../upstream/scripted.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

const CANDIDATES = ['anthropic/claude-sonnet-5', 'openai/gpt-5.4', 'openai/gpt-5-mini']

/** A tenant with two providers, and `auto` over three models of them. */
async function fixture(auto: readonly string[] = CANDIDATES): Promise<ProviderFixture> {
  const made = await providerFixture()
  open.push(made)
  for (const provider of ['anthropic', 'openai']) await made.configure(provider)
  await made.json(200, 'PUT', '/v1/settings/models', { aliases: { auto } })
  return made
}

const once = { retry: { maxAttempts: 1 } }
const sent = (seen: Seen) => JSON.parse(seen.body.toString()) as { model: string; max_completion_tokens?: number }
const models = ({ remote }: ProviderFixture) => remote.seen.map(seen => sent(seen).model)
const OVERLOADED = answer(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
const BUSY = answer(429, '{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}')

it.each<[string, Script]>([
  ['a rate limit', BUSY],
  ['an overloaded host', OVERLOADED],
  ['a fault of the host', answer(503, '{}')],
  ['a connection that breaks', reset],
])('goes on to the next candidate after %s, within the same attempt', async (_, trouble) => {
  const here = await fixture()
  here.remote.queue(trouble)
  here.remote.always(stream(chatFrames(['Here.'], { usage: true, model: 'gpt-5.4' })))
  const { run } = await here.ran('auto', once)
  expect(run).toMatchObject({ status: 'succeeded', model: 'openai/gpt-5.4' })
  expect(models(here)).toEqual(['claude-sonnet-5', 'gpt-5.4'])
  const { events } = await here.json<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
  expect(events.map(({ kind }) => kind)).not.toContain('step_retrying')
  expect(events.find(({ kind }) => kind === 'step_completed')?.meta).toMatchObject({ model: 'openai/gpt-5.4' })
})

it('asks each candidate once in an attempt, and says of all what they answered', async () => {
  const here = await fixture()
  here.remote.always(answer(503, '{"error":{"message":"down"}}'))
  const { run } = await here.ran('auto', once)
  expect(models(here)).toEqual(['claude-sonnet-5', 'gpt-5.4', 'gpt-5-mini'])
  expect(run.status).toBe('failed')
  expect(run.error?.message).toContain('anthropic answered 503')
  expect(run.error?.message).toContain('; then openai answered 503')
})

it('stays with a candidate that refuses the request itself', async () => {
  const here = await fixture()
  here.remote.queue(answer(400, '{"type":"error","error":{"type":"invalid_request_error","message":"no such tool"}}'))
  here.remote.always(answer(200, JSON.stringify(chatAnswer('Here.'))))
  const { run } = await here.ran('auto', once)
  expect([run.status, models(here)]).toEqual(['failed', ['claude-sonnet-5']])
})

it('keeps to a model that is named', async () => {
  const here = await fixture()
  here.remote.queue(OVERLOADED)
  here.remote.always(answer(200, JSON.stringify(messagesAnswer('Back.', 'claude-sonnet-5'))))
  const { run } = await here.ran('anthropic/claude-sonnet-5')
  expect([run.status, models(here)]).toEqual(['succeeded', ['claude-sonnet-5', 'claude-sonnet-5']])
})

it('holds the price of the dearest candidate, and passes over one that has none', async () => {
  const here = await fixture(['openai/cheap', 'openai/free', 'openai/dear'])
  const aliases = { auto: ['openai/cheap', 'openai/free', 'openai/dear'] }
  const prices = {
    'openai/cheap': { inPerMTok: 0, outPerMTok: 1 },
    'openai/dear': { inPerMTok: 0, outPerMTok: 1000 },
  }
  await here.json(200, 'PUT', '/v1/settings/models', { aliases, prices })
  await here.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'auto', ...once } })
  await here.json(200, 'PUT', '/v1/agents/worker/budget', { maxCostUsdPerRun: 1, hardFail: true })
  here.remote.queue(answer(503, '{}'))
  here.remote.always(stream(chatFrames(['Dear.'], { usage: true, model: 'dear' })))
  const { id } = await here.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
  await (await here.events(`/v1/runs/${id}/events`)).all()
  expect(await here.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded', costUsd: 0.05 })
  expect(models(here)).toEqual(['cheap', 'dear'])
  // 1 USD buys 1000 tokens of the dear one, and a million of the cheap one.
  expect(here.remote.seen.map(seen => sent(seen).max_completion_tokens)).toEqual([1000, 1000])
})

it('asks no further candidate under a hard limit once one has used what was held for the call', async () => {
  const here = await fixture(['openai/one', 'openai/two'])
  const price = { inPerMTok: 0, outPerMTok: 1000 }
  const prices = { 'openai/one': price, 'openai/two': price }
  await here.json(200, 'PUT', '/v1/settings/models', { aliases: { auto: ['openai/one', 'openai/two'] }, prices })
  await here.json(201, 'POST', '/v1/agents', {
    name: 'worker',
    manifest: { model: 'auto', limits: { maxOutputTokens: 60 } },
  })
  await here.json(200, 'PUT', '/v1/agents/worker/budget', { maxCostUsdPerRun: 0.06 })
  // 50 tokens of the 60 that fit, and then the connection breaks.
  const frames = chatFrames(['x'.repeat(200)], { model: 'one' })
  here.remote.queue(async response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(frames.slice(0, 2).join(''))
    await new Promise(resolve => setTimeout(resolve, 50))
    response.destroy()
  })
  here.remote.always(stream(chatFrames(['y'.repeat(200)], { usage: true, model: 'two' })))
  const { id } = await here.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
  await (await here.events(`/v1/runs/${id}/events`)).all()
  const run = await here.json<Run>(200, 'GET', `/v1/runs/${id}`)
  expect(run.costUsd).toBeLessThanOrEqual(0.06)
  expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' }, costUsd: 0.05 })
})
