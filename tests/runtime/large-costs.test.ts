import { afterEach, expect, it } from 'vitest'
import type { ModelAnswer } from '../../runtime/execution/models/model.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { api } from './api.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** The most that one amount holds, in nano-USD and in dollars. */
const [MOST, MOST_USD] = [Number.MAX_SAFE_INTEGER, 9_007_199.25474099]

/** A provider that says of each call that it cost so much. */
async function fixture(costNano: number) {
  const model = {
    id: 'openai-compatible/m',
    async ask({ messages }: { messages: readonly { role: string }[] }): Promise<ModelAnswer> {
      const last = messages.some(({ role }) => role === 'tool')
      const spent = { tokensIn: 1, tokensOut: 1, costNano }
      const parts = { inputNano: costNano, cacheReadNano: 0, cacheWriteNano: 0, outputNano: 0 }
      const toolCalls = last ? [] : [{ id: 'c', name: 'wait', arguments: { seconds: 1 } }]
      const said = { text: 'done', toolCalls, stop: last ? ('end' as const) : ('tools' as const) }
      return {
        ...said,
        provider: 'openai-compatible',
        model: 'openai-compatible/m',
        spent,
        parts: { ...parts, cacheReadTokens: 0, cacheWriteTokens: 0 },
      }
    },
  }
  const made = await api({ models: { find: async () => model } })
  open.push(made)
  const { json, call } = made
  await json(201, 'POST', '/v1/agents', { name: 'dear', manifest: { model: 'openai-compatible/m', tools: ['wait'] } })
  return {
    ...made,
    async run(): Promise<Run> {
      const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName: 'dear', input: { prompt: 'x' } })
      await (await call('GET', `/v1/runs/${id}/events`)).text()
      return json<Run>(200, 'GET', `/v1/runs/${id}`)
    },
  }
}

it('goes on when a provider says that calls have cost more than one amount can hold', async () => {
  const { run, json } = await fixture(MOST)
  await json(200, 'PUT', '/v1/agents/dear/budget', { maxCostUsdPerDay: 1, hardFail: false })
  for (let n = 0; n < 3; n++) {
    expect(await run()).toMatchObject({ status: 'succeeded', costUsd: MOST_USD, treeCostUsd: MOST_USD })
  }
  const usage = await json<UsageItem[]>(200, 'GET', '/v1/usage')
  expect(usage).toMatchObject([{ runs: 3, costUsd: MOST_USD }])
  for (const path of ['/v1/overview', '/v1/runs', '/v1/agents/dear/budget']) await json(200, 'GET', path)
  await json(200, 'PUT', '/v1/agents/dear/budget', { maxTokensPerDay: 1 })
  await json(402, 'POST', '/v1/runs', { agentName: 'dear', input: { prompt: 'x' } })
})

it('keeps the session of such calls', async () => {
  const { json, call } = await fixture(MOST)
  const { id } = await json<Session>(201, 'POST', '/v1/sessions', { agentName: 'dear' })
  for (let n = 0; n < 2; n++) {
    const turn = await call('POST', `/v1/sessions/${id}/messages`, { content: 'x' })
    await turn.text()
    expect(turn.status).toBeLessThan(300)
  }
  expect(await json<Session>(200, 'GET', `/v1/sessions/${id}`)).toMatchObject({ costUsd: MOST_USD })
})
