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

it.each([
  ['/v1beta/openai', '/v1beta/openai'],
  ['/v1/projects/p/locations/l/endpoints/openapi', '/v1/projects/p/locations/l/endpoints/openapi'],
  ['/api/paas/v4/', '/api/paas/v4'],
  ['/gateway', '/gateway/v1'],
  // GitHub Models, Databricks and Perplexity have no version: their address is given whole.
  ['/inference/chat/completions', '/inference'],
  ['/serving-endpoints/chat/completions', '/serving-endpoints'],
  ['/chat/completions/', ''],
])('takes the address of a chat host at %s as its vendor gives it', async (path, whole) => {
  const upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(chatAnswer())))
  const config = `
    defaults = { mode = "enforce", gates = ["non-empty"] }
    price = [{ model = "far/m", input_per_mtok = 1, output_per_mtok = 5 }]
    provider = [{ id = "far", dialect = "chat", base_url = "${upstream.origin}${path}", auth = "none" }]
    route = [{ match = {}, ladder = ["far/m"] }]
  `
  const env = { ROUTER_UPSTREAM_CHAT: upstream.origin + path, ROUTER_UPSTREAM_MESSAGES: `${upstream.origin}${path}` }
  const messages = [{ role: 'user' as const, content: 'hi' }]
  for (const options of [{ env }, { config }]) {
    const { origin, stop } = await servedRouter(options)
    await new OpenAI({ apiKey: 'sk', baseURL: `${origin}/v1`, maxRetries: 0 }).chat.completions.create({
      model: 'm',
      messages,
    })
    await stop()
  }
  const { origin, stop } = await servedRouter({ env })
  await fetch(`${origin}/v1/files`, { headers: { 'x-api-key': 'sk' } })
  await stop()
  const called = `${whole}/chat/completions`
  expect(upstream.seen.map(({ url }) => url)).toEqual([called, called, `${path.replace(/\/$/, '')}/v1/files`])
  await upstream.close()
})
