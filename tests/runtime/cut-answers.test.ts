import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(): Promise<ProviderFixture> {
  const made = await providerFixture()
  open.push(made)
  await made.configure('openai-compatible')
  await made.configure('anthropic')
  return made
}

const says = (body: object) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
const chat = (message: object, finish: string) => ({
  id: 'chatcmpl-01',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: '', refusal: null, ...message }, finish_reason: finish },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
})
const messages = (text: string, stop: string) => ({
  ...messagesAnswer(text),
  content: text === '' ? [] : [{ type: 'text', text }],
  stop_reason: stop,
})

const CASES = [
  ['anthropic/claude-haiku-4-5', messages('cut he', 'max_tokens'), 'output_truncated', 'cut he', 'truncated'],
  ['anthropic/claude-haiku-4-5', messages('', 'refusal'), 'model_refused', '', 'refused'],
  ['openai-compatible/m', chat({ content: '' }, 'length'), 'output_truncated', '', 'truncated'],
  ['openai-compatible/m', chat({ content: 'partial' }, 'content_filter'), 'model_refused', 'partial', 'refused'],
  ['openai-compatible/m', chat({ refusal: 'I will not.' }, 'stop'), 'model_refused', 'I will not.', 'refused'],
] as const

describe('an answer that is not whole', () => {
  it.each(CASES)('of %s ends the run by its name, with what came of it (%#)', async (model, body, code, result) => {
    const on = await fixture()
    on.remote.always(says(body))
    const { run } = await on.ran(model)
    expect(run).toMatchObject({ status: 'failed', output: { result }, error: { code, stepId: 'model-1' } })
    expect(run.error?.message).toMatch(code === 'output_truncated' ? /limits\.maxOutputTokens/ : /refused/)
    expect(run.tokensOut).toBeGreaterThan(0)
    expect(on.remote.seen).toHaveLength(1)
    const receipt = await on.json(200, 'GET', `/v1/runs/${run.id}/receipt`)
    expect(await on.json(200, 'POST', '/v1/runs/receipts/verify', { receipt })).toMatchObject({ valid: true })
  })

  it.each(CASES)(
    'of %s is the text of a turn, which says how it ended (%#)',
    async (model, body, _code, text, finish) => {
      const on = await fixture()
      await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model } })
      const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
      on.remote.queue(says(body))
      on.remote.always(
        says(model.startsWith('anthropic') ? messages('whole', 'end_turn') : chat({ content: 'whole' }, 'stop')),
      )
      const send = (content: string) => on.json<object>(200, 'POST', `/v1/sessions/${id}/messages`, { content })
      expect(await send('Go.')).toMatchObject({ status: 'completed', text, finish })
      expect(await send('Go on.')).toMatchObject({ status: 'completed', text: 'whole', finish: 'complete' })
      const events = await on.events(`/v1/sessions/${id}/events?replay=2`)
      const ends: unknown[] = []
      while (ends.length < 2) {
        const event = await events.next()
        if (event?.event === 'message_completed') ends.push(event.data)
      }
      expect(ends).toMatchObject([
        { text, finish },
        { text: 'whole', finish: 'complete' },
      ])
    },
  )

  it('is not called a tool with: a call that was cut is not made', async () => {
    const on = await fixture()
    const call = { id: 'c1', type: 'function', function: { name: 'wait', arguments: '{"seconds": 0}' } }
    on.remote.always(says(chat({ content: 'I wait', tool_calls: [call] }, 'length')))
    const { run, steps } = await on.ran('openai-compatible/m', { tools: ['wait'] })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'output_truncated' }, output: { result: 'I wait' } })
    expect(steps.map(({ stepId }) => stepId)).toEqual(['model-1'])
  })

  it('says so when it was the budget that left no more room', async () => {
    const on = await fixture()
    await on.json(200, 'PUT', '/v1/settings/models', {
      prices: { 'openai-compatible/m': { inPerMTok: 0, outPerMTok: 10 } },
    })
    await on.json(201, 'POST', '/v1/agents', {
      name: 'tight',
      manifest: { model: 'openai-compatible/m', limits: { maxOutputTokens: 4000 } },
    })
    await on.json(200, 'PUT', '/v1/agents/tight/budget', { maxCostUsdPerRun: 0.01 })
    on.remote.always(says(chat({ content: 'cut' }, 'length')))
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'tight' })
    await (await on.events(`/v1/runs/${id}/events`)).all()
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    expect(run.error).toMatchObject({ code: 'output_truncated', message: expect.stringContaining('budget') })
    expect(JSON.parse(on.remote.seen[0]!.body.toString())).toMatchObject({ max_tokens: 1000 })
  })
})

describe('an answer that its provider paused', () => {
  it('is sent back as it was, and gone on with', async () => {
    const on = await fixture()
    const blocks = [
      { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'x' } },
      { type: 'text', text: 'The first half, ' },
    ]
    on.remote.queue(says({ ...messages('', 'pause_turn'), content: blocks }), says(messages('the second.', 'end_turn')))
    const { run } = await on.ran('anthropic/claude-haiku-4-5')
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'The first half, the second.' } })
    const { messages: sent } = JSON.parse(on.remote.seen[1]!.body.toString()) as { messages: unknown[] }
    expect(sent).toEqual([expect.objectContaining({ role: 'user' }), { role: 'assistant', content: blocks }])
  })

  it('is not gone on with for ever', async () => {
    const on = await fixture()
    on.remote.always(says(messages('again ', 'pause_turn')))
    const { run } = await on.ran('anthropic/claude-haiku-4-5')
    expect(run).toMatchObject({ status: 'failed', error: { code: 'limit_exceeded' } })
    expect(on.remote.seen.length).toBeLessThan(20)
  })
})
