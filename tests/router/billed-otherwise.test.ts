import { describe, expect, it } from 'vitest'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const PRICES = `price = [
  { model = "anthropic/claude-opus-5", input_per_mtok = 10, output_per_mtok = 100, per_web_search_usd = 0.01 },
  { model = "anthropic/small", input_per_mtok = 1, output_per_mtok = 10 },
  { model = "openai/gpt-5", input_per_mtok = 10, output_per_mtok = 100 },
]`
const enforced = (budget = '') => `${PRICES}
provider = [
  { id = "anthropic", dialect = "messages", base_url = "${upstream.origin}", auth = "none" },
  { id = "openai", dialect = "chat", base_url = "${upstream.origin}", auth = "none" },
]
[[route]]
match = { model = "claude-*" }
mode = "enforce"
ladder = ["anthropic/claude-opus-5"]
gates = ["non-empty"]
${budget}
[[route]]
match = {}
mode = "enforce"
ladder = ["openai/gpt-5"]
gates = ["non-empty"]
${budget}`

const start = async (config: string) => {
  running = await testRouter({
    config,
    env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: upstream.origin },
  })
  return running
}

const USED = { input_tokens: 100, output_tokens: 10 }
const messages = (usage: object, model = 'claude-opus-5') => ({ ...messagesAnswer('Found.', model), usage })
const question = (more: object = {}) => ({
  model: 'claude-opus-5',
  max_tokens: 50,
  messages: [{ role: 'user', content: 'Look it up.' }],
  ...more,
})
const declined = { type: 'message', model: 'claude-opus-5', ...USED }
const served = { type: 'fallback_message', model: 'small', ...USED }
const advisor = { type: 'advisor_message', model: 'small', ...USED }

describe.each(['observed', 'enforced'])('the cost of an %s call', mode => {
  const config = () => (mode === 'observed' ? PRICES : enforced())

  // 100 tokens in for 0.001 USD and 10 out for 0.001, by `small` a tenth of it.
  it.each<[string, object, number | null]>([
    ['three searches of the provider', { server_tool_use: { web_search_requests: 3 } }, 0.032],
    ['fast mode', { speed: 'fast' }, 0.004],
    ['one region', { inference_geo: 'us' }, 0.0022],
    ['an advisor', { iterations: [{ ...declined }, advisor] }, 0.0022],
    ['a fallback of the provider', { iterations: [declined, served] }, 0.0022],
    ['a fallback to a model without a price', { iterations: [{ ...served, model: 'other' }] }, null],
    ['what the provider says that it bills', { cost: 0.25 }, 0.25],
    ['no less than the list price', { cost: 0.0001 }, 0.002],
    ['what it says of a model without a price', { cost: 0.25, iterations: [{ ...served, model: 'other' }] }, 0.25],
  ])('holds %s', async (_, usage, cost) => {
    const router = await start(config())
    upstream.queue(answer(200, JSON.stringify(messages({ ...USED, ...usage }))))
    const got = await router.post('/v1/messages', question())
    expect(got.status).toBe(200)
    await got.text()
    const [receipt] = await router.receipts()
    expect(receipt?.attempts[0]?.cost).toBe(cost)
    expect(receipt?.final.total_cost_usd).toBe(cost)
  })

  it.each([
    ['priority', 2],
    ['flex', 0.5],
    ['default', 1],
  ])('is that of the tier %s that served it', async (service_tier, times) => {
    const router = await start(config())
    const usage = { prompt_tokens: 100, completion_tokens: 10 }
    upstream.queue(answer(200, JSON.stringify({ ...chatAnswer('Found.', 'gpt-5'), usage, service_tier })))
    const ask = { model: 'gpt-5', messages: [{ role: 'user', content: 'Look it up.' }] }
    const got = await router.post('/v1/chat/completions', ask)
    expect(got.status).toBe(200)
    await got.text()
    const [receipt] = await router.receipts()
    expect(receipt?.final.total_cost_usd).toBe(0.002 * times)
    // What the tier adds is not what the ladder saved or lost.
    expect(receipt?.final.savings_usd).toBe(0)
  })
})

describe('a budget', () => {
  const status = async (config: string, ...asked: object[]) => {
    const router = await start(config)
    upstream.always(answer(200, JSON.stringify(messages({ ...USED, iterations: [{ ...served, model: 'other' }] }))))
    const all: number[] = []
    for (const more of asked) {
      const got = await router.post('/v1/messages', question(more))
      await got.text()
      all.push(got.status)
    }
    return all
  }

  it('holds what the request asks for beside its tokens', async () => {
    // About 60 tokens in and 50 out: below 0.006 USD, and twice that in fast mode.
    const config = enforced('budget = { per_request_usd = 0.007 }')
    const tools = (more: object) => ({ tools: [{ type: 'web_search_20260318', name: 'web_search', ...more }] })
    expect(await status(config, {}, { speed: 'fast' }, { fallbacks: 'default' })).toEqual([200, 402, 402])
    expect(await status(config, tools({ max_uses: 0 }), tools({ max_uses: 1 }), tools({}))).toEqual([200, 402, 402])
    expect(await status(config, { fallbacks: [{ model: 'small' }] })).toEqual([200])
    const asked = { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-5' }
    expect(await status(config, { tools: [asked] })).toEqual([402])
  })

  it('counts an answer of unknown price as the most that it may have cost', async () => {
    expect(await status(enforced('budget = { per_tenant_day_usd = 0.009 }'), {}, {})).toEqual([200, 402])
  })
})
