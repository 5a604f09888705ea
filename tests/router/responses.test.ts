import { request } from 'node:http'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { failedFrames, responsesAnswer, responsesFrames } from '../upstream/responses.ts'
import { answer, type Script, type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

const ASK: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
  model: 'gpt-4.1-mini',
  instructions: 'Be short.',
  input: [
    { role: 'user', content: [{ type: 'input_text', text: 'What is in it?' }] },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'A cat.' },
  ],
  tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }],
}

/** Sends these frames and cuts the connection. */
const cutting =
  (frames: readonly string[]): Script =>
  response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of frames) response.write(frame)
    setTimeout(() => response.destroy(), 50)
  }

describe.each([
  ['on Node’s own objects', true],
  ['behind fetch', false],
])('the Responses API, observed %s', (_, direct) => {
  let upstream: ScriptedUpstream
  let router: ServedRouter
  let client: OpenAI
  beforeAll(async () => {
    upstream = await scriptedUpstream()
    router = await servedRouter({ direct, env: { ROUTER_UPSTREAM_CHAT: upstream.origin } })
    client = new OpenAI({ apiKey: 'sk-test', baseURL: `${router.origin}/v1`, maxRetries: 0 })
  })
  afterAll(() => upstream.close())

  async function streamed(): Promise<string[]> {
    const types: string[] = []
    for await (const event of await client.responses.create({ ...ASK, stream: true })) types.push(event.type)
    return types
  }

  it('passes as it is through the official SDK, and every call has a receipt', async () => {
    const json = (value: object, status = 200) => upstream.queue(answer(status, JSON.stringify(value)))
    json(responsesAnswer('A cat.'))
    expect((await client.responses.create(ASK)).output_text).toBe('A cat.')
    expect(JSON.parse(String(upstream.seen[0]!.body))).toEqual(ASK)

    upstream.queue(stream(responsesFrames(['A ', 'cat.'])))
    expect(await streamed()).toHaveLength(responsesFrames(['A ', 'cat.']).length)

    json({ ...responsesAnswer(''), status: 'queued', output: [], usage: null })
    expect((await client.responses.create({ ...ASK, background: true })).status).toBe('queued')

    json({ error: { type: 'tokens', code: 'rate_limit_exceeded', message: 'slow' } }, 429)
    await expect(client.responses.create(ASK)).rejects.toMatchObject({ status: 429, code: 'rate_limit_exceeded' })

    upstream.queue(cutting(responsesFrames(['A ', 'cat.']).slice(0, 6)))
    await expect(streamed()).rejects.toThrow()

    upstream.queue(stream(failedFrames))
    await streamed()

    // What is asked about a stored response passes, and is nothing that a model is paid for.
    json(responsesAnswer('A cat.'))
    expect((await client.responses.retrieve('resp_01')).output_text).toBe('A cat.')

    const { receipts: all } = await router.stop()
    const receipts = all.filter(({ request }) => request.api === 'responses')
    expect(all.at(-1)).toMatchObject({
      request: { api: 'passthrough', method: 'GET', path: '/v1/responses/resp_01' },
      final: { total_cost_usd: 0 },
    })
    expect(receipts).toHaveLength(6)
    expect(
      receipts.map(({ request: { api, features } }) => [api, features.requested_model, features.tool_count]),
    ).toEqual(receipts.map(() => ['responses', 'gpt-4.1-mini', 1]))
    const said = receipts.map(({ attempts: [attempt], final }) => [
      attempt?.status,
      attempt?.tokens.output,
      attempt?.usage_source,
      attempt?.cost,
      attempt?.finish,
      attempt?.error_class,
      final.truncated,
    ])
    // 200 tokens for 0.4, 1,000 cached ones for 0.1 and 50 for 1.6 dollars a million.
    expect(said).toEqual([
      [200, 50, 'provider', 0.00026, 'completed', undefined, undefined],
      [200, 50, 'provider', 0.00026, 'completed', undefined, undefined],
      [200, 0, 'none', null, 'queued', undefined, undefined],
      [429, 0, 'none', 0, null, 'rate_limited', undefined],
      [200, 0, 'none', null, 'in_progress', 'transport', true],
      [200, 0, 'none', null, 'failed', 'upstream_5xx', undefined],
    ])
    expect(receipts[0]!.attempts[0]!.tokens).toMatchObject({ uncached: 200, cache_read: 1000 })
    expect(receipts.map(({ final }) => final.response_id)).toEqual([
      'resp_01',
      'resp_01',
      'resp_01',
      undefined,
      'resp_01',
      'resp_01',
    ])
  })
})

it('refuses a WebSocket at once, so that a client that has another way takes it', async () => {
  const upstream = await scriptedUpstream()
  const router = await servedRouter({ env: { ROUTER_UPSTREAM_CHAT: upstream.origin } })
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    }
    const asked = request(`${router.origin}/v1/responses`, { headers }, got => resolve(got.resume().statusCode))
    asked.on('error', reject).end()
  })
  expect([status, upstream.seen.length]).toEqual([426, 0])
  await router.stop()
  await upstream.close()
})
