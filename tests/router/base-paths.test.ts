import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, it } from 'vitest'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { responsesAnswer } from '../upstream/responses.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { servedRouter } from './served-routers.ts'

it('takes the base address of a client with /v1, without it, and with one too many', async () => {
  const upstream = await scriptedUpstream()
  const { origin, stop } = await servedRouter({
    env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: `${upstream.origin}/v1` },
  })
  const messages = [{ role: 'user' as const, content: 'hi' }]
  for (const base of [origin, `${origin}/v1`]) {
    const openai = new OpenAI({ apiKey: 'sk', baseURL: base, maxRetries: 0 })
    const anthropic = new Anthropic({ apiKey: 'sk', baseURL: base, maxRetries: 0 })
    upstream.queue(
      answer(200, JSON.stringify(chatAnswer())),
      answer(200, JSON.stringify(responsesAnswer('hi'))),
      answer(200, JSON.stringify({ object: 'list', data: [] })),
      answer(200, JSON.stringify(messagesAnswer())),
    )
    await openai.chat.completions.create({ model: 'm', messages })
    await openai.responses.create({ model: 'm', input: 'hi' })
    await openai.models.list()
    await anthropic.messages.create({ model: 'm', max_tokens: 9, messages })
  }
  // The AI SDK and others put the version into the base address, and name the path without it.
  upstream.queue(answer(200, JSON.stringify(messagesAnswer())))
  const bare = await fetch(`${origin}/messages?beta=true`, { method: 'POST', body: '{"model":"m"}' })
  expect(bare.status).toBe(200)
  const paths = ['/v1/chat/completions', '/v1/responses', '/v1/models', '/v1/messages']
  expect(upstream.seen.map(({ url }) => url)).toEqual([...paths, ...paths, '/v1/messages?beta=true'])
  expect((await fetch(`${origin}/traces-of-mine`)).status).toBe(404)
  const { receipts } = await stop()
  expect(receipts.map(({ request }) => request.api)).toEqual([
    ...['chat', 'responses', 'passthrough', 'messages', 'chat', 'responses', 'passthrough', 'messages', 'messages'],
  ])
  await upstream.close()
})
