import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import Anthropic, { toFile } from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answer, type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

const SALT = 'salt'
const bodyHash = (body: Buffer) => createHash('sha256').update(`${SALT}body\0`).update(body).digest('hex')

describe.each([
  ['on Node’s own objects', true],
  ['behind fetch', false],
])('provider paths that are not routed, %s', (_, direct) => {
  let upstream: ScriptedUpstream
  let router: ServedRouter
  let openai: OpenAI
  let anthropic: Anthropic
  beforeAll(async () => {
    upstream = await scriptedUpstream()
    const env = { ROUTER_UPSTREAM_CHAT: upstream.origin, ROUTER_UPSTREAM_MESSAGES: upstream.origin }
    router = await servedRouter({ direct, env, promptSalt: SALT, maxBodyBytes: 100_000 })
    openai = new OpenAI({ apiKey: 'sk-test', baseURL: `${router.origin}/v1`, maxRetries: 0 })
    anthropic = new Anthropic({ apiKey: 'sk-test', baseURL: router.origin, maxRetries: 0 })
  })
  afterAll(() => upstream.close())

  const json = (value: object, status = 200) => upstream.queue(answer(status, JSON.stringify(value)))
  const lastSeen = () => `${upstream.seen.at(-1)!.method} ${upstream.seen.at(-1)!.url}`

  it('pass through the official SDKs as they are, and each call leaves a receipt', async () => {
    const list = { object: 'list', data: [], has_more: false, first_id: null, last_id: null }
    const calls: [line: string, answer: object, call: () => Promise<unknown>][] = [
      ['POST /v1/moderations', { id: 'modr-1', results: [] }, () => openai.moderations.create({ input: 'hm' })],
      ['POST /v1/images/generations', { data: [] }, () => openai.images.generate({ prompt: 'a cat' })],
      ['POST /v1/batches', { id: 'batch_1' }, () => createBatch(openai)],
      ['GET /v1/batches/batch_1', { id: 'batch_1' }, () => openai.batches.retrieve('batch_1')],
      ['POST /v1/vector_stores', { id: 'vs_1' }, () => openai.vectorStores.create({ name: 'mine' })],
      ['POST /v1/conversations', { id: 'conv_1' }, () => openai.conversations.create({})],
      ['GET /v1/evals', list, () => openai.evals.list()],
      ['GET /v1/chat/completions', list, () => openai.chat.completions.list()],
      ['DELETE /v1/models/ft:mine', { id: 'ft:mine', deleted: true }, () => openai.models.delete('ft:mine')],
      ['DELETE /v1/responses/resp_1', {}, () => openai.responses.delete('resp_1')],
      ['GET /v1/models', list, () => anthropic.beta.models.list()],
      ['GET /v1/skills', list, () => anthropic.beta.skills.list()],
      ['POST /v1/files', { id: 'file_1' }, () => uploadNote(anthropic)],
    ]
    for (const [line, value, call] of calls) {
      json(value)
      await call()
      expect(lastSeen()).toBe(line)
    }
    for (const path of ['/images/generations', '/audio/speech', '/v1/v1/batches']) {
      json({})
      expect((await fetch(`${router.origin}${path}`, { method: 'POST', body: '{}' })).status).toBe(200)
    }
  })

  it('are metered where the answer says what was used, in JSON and in a stream', async () => {
    json({
      object: 'list',
      data: [],
      model: 'text-embedding-3-small',
      usage: { prompt_tokens: 1000, total_tokens: 1000 },
    })
    await openai.embeddings.create({ model: 'text-embedding-3-small', input: 'hm', encoding_format: 'float' })
    const details = { input_tokens_details: { cached_tokens: 200, cache_write_tokens: 300 } }
    json({ id: 'cmp_1', output: [], usage: { input_tokens: 1000, ...details, output_tokens: 10, total_tokens: 1010 } })
    await openai.responses.compact({ model: 'gpt-4.1', input: 'hm' })
    json({ object: 'response.input_tokens', input_tokens: 12 })
    await openai.responses.inputTokens.count({ model: 'gpt-4.1', input: 'hm' })
    const done = {
      type: 'transcript.text.done',
      text: 'hm',
      usage: { type: 'tokens', input_tokens: 14, output_tokens: 3 },
    }
    upstream.queue(
      stream([`data: {"type":"transcript.text.delta","delta":"hm"}\n\n`, `data: ${JSON.stringify(done)}\n\n`]),
    )
    await (await fetch(`${router.origin}/v1/audio/transcriptions`, { method: 'POST', body: 'sound' })).text()
  })

  it('take a file that is larger than what is read of other calls, and its bytes are the same and hashed', async () => {
    const body = randomBytes(3_000_000)
    json({ id: 'file_2' })
    const sent = await fetch(`${router.origin}/v1/files`, { method: 'POST', body })
    expect(sent.status).toBe(200)
    expect(upstream.seen.at(-1)!.body.equals(body)).toBe(true)
    const refused = await fetch(`${router.origin}/v1/chat/completions`, { method: 'POST', body })
    expect(refused.status).toBe(413)
  })

  it('pass the refusal of a provider on, and are no way out of the provider’s own paths', async () => {
    json({ error: { message: 'no such thing', type: 'invalid_request_error' } }, 404)
    await expect(openai.batches.retrieve('batch_2')).rejects.toMatchObject({ status: 404 })
    const seen = upstream.seen.length
    for (const path of [
      '/v1/files/%2e%2e/%2e%2e/admin',
      '/v1/x/../../admin',
      '/v1beta/models/g:generateContent',
      '/v1',
    ]) {
      expect(await statusOf(router.origin, path), path).toBe(404)
    }
    const gemini = await fetch(`${router.origin}/v1/models/gemini-3:generateContent`, { method: 'POST', body: '{}' })
    expect([gemini.status, await gemini.text()]).toEqual([404, expect.stringContaining('Gemini dialect')])
    const headers = { 'x-goog-api-key': 'theirs' }
    for (const path of ['/v1/interactions', '/v1/models', '/v1/files']) {
      const got = await fetch(router.origin + path, { headers })
      expect([got.status, await got.text()], path).toEqual([404, expect.stringContaining('Gemini dialect')])
    }
    expect((await fetch(`${router.origin}/v1/interactions`, { method: 'POST', body: '{}' })).status).toBe(404)
    expect(upstream.seen).toHaveLength(seen)
  })

  it('leave receipts that say what was called', async () => {
    const { receipts } = await router.stop()
    const lines = receipts.map(({ request: { api, method, path } }) => [api, `${method} ${path}`])
    expect(lines[0]).toEqual(['passthrough', 'POST /v1/moderations'])
    expect(lines).toContainEqual(['passthrough', 'GET /v1/models'])
    expect(lines).toContainEqual(['passthrough', 'POST /v1/audio/speech'])
    const of = (path: string) => receipts.find(({ request }) => request.path === path)!
    expect(of('/v1/embeddings').attempts[0]).toMatchObject({
      model: 'text-embedding-3-small',
      provider: 'openai',
      tokens: { uncached: 1000, output: 0 },
      usage_source: 'provider',
      cost: 0.00002,
    })
    expect(of('/v1/responses/compact').attempts[0]).toMatchObject({
      model: 'gpt-4.1',
      tokens: { cache_read: 200, cache_write_5m: 300, uncached: 500, output: 10 },
      cost: expect.any(Number),
    })
    // To count is free.
    expect(of('/v1/responses/input_tokens').final.total_cost_usd).toBe(0)
    // Sound and pictures have prices of their own: what they cost is not known from a count of tokens.
    expect(of('/v1/audio/transcriptions').attempts[0]).toMatchObject({
      tokens: { uncached: 14, output: 3 },
      usage_source: 'provider',
      cost: null,
    })
    expect(of('/v1/batches/batch_1').final).toMatchObject({ total_cost_usd: 0, served_from: 'passthrough' })
    expect(of('/v1/skills').attempts[0]!.provider).toBe('anthropic')
    expect(of('/v1/batches/batch_2').attempts[0]).toMatchObject({ status: 404, error_class: 'upstream_4xx' })
    const large = receipts.findLast(({ request }) => request.path === '/v1/files')!
    const bytes = upstream.seen.find(({ body }) => body.length === 3_000_000)!.body
    expect(large.request).toMatchObject({ body_sha256_in: bodyHash(bytes), body_sha256_out: bodyHash(bytes) })
    expect(large.request.features.body_bytes).toBe(3_000_000)
  })
})

const createBatch = (client: OpenAI) =>
  client.batches.create({ input_file_id: 'file_1', endpoint: '/v1/responses', completion_window: '24h' })

const uploadNote = async (client: Anthropic) =>
  client.beta.files.upload({ file: await toFile(Buffer.from('note'), 'note.txt', { type: 'text/plain' }) })

/** The path as it is written, which `fetch` would resolve before it sends it. */
function statusOf(origin: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(origin, { path }, got => {
      got.resume()
      resolve(got.statusCode)
    })
    sent.on('error', reject).end()
  })
}
