import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let router: ServedRouter | undefined
beforeEach(async () => {
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  await router?.stop()
  await upstream.close()
})

const CONFIG = `
price = [{ model = "mine/a", input_per_mtok = 1, output_per_mtok = 5 }]
model = [{ id = "mine/a", max_input_tokens = 32000 }]
provider = [{ id = "mine", dialect = "chat", base_url = "http://127.0.0.1:9", auth = "none" }]
[[route]]
match = { model = ["house-*", "fast"] }
mode = "enforce"
ladder = ["mine/a", "openai/gpt-4.1"]
gates = ["non-empty"]
[[route]]
match = {}
mode = "observe"
`
const start = async (config: string) => {
  const env = { ROUTER_UPSTREAM_CHAT: upstream.origin, ROUTER_UPSTREAM_MESSAGES: upstream.origin }
  router = await servedRouter({ config, env })
  return {
    openai: new OpenAI({ apiKey: 'sk', baseURL: `${router.origin}/v1`, maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey: 'sk', baseURL: router.origin, maxRetries: 0 }),
  }
}

describe('the models of a router that routes', () => {
  it('are listed for the OpenAI SDK with windows and prices, and can be asked for by name', async () => {
    const { openai } = await start(CONFIG)
    const { data } = await openai.models.list()
    expect(data.map(({ id, owned_by }) => [id, owned_by])).toEqual([
      ['auto', 'router'],
      ['fast', 'router'],
      ['a', 'mine'],
      ['gpt-4.1', 'openai'],
    ])
    expect(data[2]).toMatchObject({ context_window: 32_000, pricing: { input_per_mtok: 1, output_per_mtok: 5 } })
    expect(data[3]).toMatchObject({
      object: 'model',
      context_window: expect.any(Number),
      pricing: { source: 'builtin' },
    })
    expect(await openai.models.retrieve('gpt-4.1')).toEqual(data[3])
    expect(upstream.seen).toHaveLength(0)
  })

  it('are listed for the Anthropic SDK in its own shape', async () => {
    const { anthropic } = await start(CONFIG)
    const page = await anthropic.models.list()
    expect(page.data.map(({ id, type, display_name }) => [id, type, display_name])).toEqual(
      ['auto', 'fast', 'a', 'gpt-4.1'].map(id => [id, 'model', id]),
    )
    expect(page.has_more).toBe(false)
    // Whatever the maker's own list always has is there, as unknown.
    expect(await anthropic.models.retrieve('auto')).toEqual({
      type: 'model',
      id: 'auto',
      display_name: 'auto',
      created_at: '1970-01-01T00:00:00Z',
      capabilities: null,
      max_input_tokens: null,
      max_tokens: null,
      line: null,
      lifecycle: 'active',
      deprecated_at: null,
      retires_at: null,
    } satisfies Anthropic.ModelInfo)
  })

  it('leave the vendor’s to the vendor: one that is not routed, a list in observe, and all where nothing is enforced', async () => {
    const { openai } = await start(CONFIG)
    upstream.always(answer(200, JSON.stringify({ object: 'list', data: [{ id: 'theirs', object: 'model' }] })))
    await openai.models.retrieve('o9')
    const asked = await openai.models.list({ headers: { 'x-router-mode': 'observe' } })
    expect(asked.data[0]!.id).toBe('theirs')
    // A name that is no encoding is the vendor's to refuse.
    expect((await fetch(`${router!.origin}/v1/models/%E0%A4%A`)).status).toBe(200)
    await router!.stop()
    const other = await start('')
    expect((await other.openai.models.list()).data[0]!.id).toBe('theirs')
    expect(upstream.seen.map(({ url }) => url)).toEqual([
      '/v1/models/o9',
      '/v1/models',
      '/v1/models/%E0%A4%A',
      '/v1/models',
    ])
  })
})
