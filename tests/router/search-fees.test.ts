import { afterEach, beforeEach, expect, it } from 'vitest'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined

beforeEach(async () => {
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  await running?.close()
  running = undefined
  await upstream.close()
})

const SEARCHED = {
  ...messagesAnswer('Found.', 'm'),
  usage: { input_tokens: 100, output_tokens: 10, server_tool_use: { web_search_requests: 3 } },
}
const PRICES = `price = [{ model = "anthropic/m", input_per_mtok = 10, output_per_mtok = 100, per_web_search_usd = 0.01 }]`
/** 100 tokens in for 0.001 USD, 10 out for 0.001, three searches for 0.03. */
const COST = 0.032

it.each([
  ['an observed call', () => PRICES],
  [
    'an enforced call',
    () => `${PRICES}
provider = [{ id = "anthropic", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["anthropic/m"]
gates = ["non-empty"]`,
  ],
])('the fee for searches of the provider is part of what %s cost', async (_, config) => {
  running = await testRouter({ config: config(), env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
  upstream.queue(answer(200, JSON.stringify(SEARCHED)))
  const ask = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'Look it up.' }] }
  const got = await running.post('/v1/messages', ask)
  expect(got.status).toBe(200)
  await got.text()
  const [receipt] = await running.receipts()
  expect(receipt?.attempts[0]?.cost).toBe(COST)
  expect(receipt?.final.total_cost_usd).toBe(COST)
})
