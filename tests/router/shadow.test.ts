import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRouter } from '../../router/router.ts'
import type { Savings } from '../../shared/wire/router/savings.ts'
import { messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { type ScriptedUpstream, scriptedUpstream, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
beforeEach(async () => {
  upstream = await scriptedUpstream()
  upstream.always((response, { url }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const top = url.startsWith('/large')
    const answer = messagesAnswer(top ? 'dear' : 'cheap', top ? 'best' : 'cheap')
    response.end(JSON.stringify({ ...answer, usage: { input_tokens: 100, output_tokens: top ? 60 : 20 } }))
  })
})
afterEach(async () => {
  await running?.close()
  running = undefined
  await upstream.close()
})

const config = (rate: number, rest = '') => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
]
${rest}
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty"]
shadow_rate = ${rate}
`
const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const savings = async ({ router }: Pick<TestRouter, 'router'>) =>
  (await (await router.fetch(new Request('http://router/-/savings'))).json()) as Savings
const asked = (path: string) => upstream.seen.filter(({ url }) => url.startsWith(path)).length
const measured = (count: number) => () =>
  expect.poll(async () => (await savings(running!)).shadow?.requests, { timeout: 20_000 }).toBe(count)

describe('shadow samples', () => {
  it('measure what the top rung takes, and then stand on every receipt', async () => {
    running = await testRouter({ config: config(1) })
    for (let n = 0; n < 31; n++) {
      expect((await running.post('/v1/messages', ASK)).headers.get('x-router-served-rung')).toBe('0')
      if (n === 29) await measured(30)()
    }
    await measured(31)()
    expect([asked('/small'), asked('/large')]).toEqual([31, 31])
    const { shadow, ratio_ci } = await savings(running)
    // The same tokens: 100 in, 20 out; measured: 100 in, 60 out.
    expect(shadow).toMatchObject({ requests: 31, spent_usd: 0.186, same_token_usd: 0.093, measured_usd: 0.186 })
    expect(ratio_ci).toEqual([2, 2])
    const receipts = await running.receipts()
    expect(receipts).toHaveLength(31)
    expect(receipts[29]!.final).not.toHaveProperty('baseline_calibrated_usd')
    expect(receipts[30]!.final).toMatchObject({
      total_cost_usd: 0.0002,
      baseline_same_token_usd: 0.003,
      baseline_calibrated_usd: 0.006,
      savings_calibrated_usd: 0.0058,
    })
  })

  it('outlive a restart', async () => {
    running = await testRouter({ config: config(1) })
    for (let n = 0; n < 30; n++) await running.post('/v1/messages', ASK)
    await measured(30)()
    await running.router.close()
    const again = createRouter({ config: config(0), db: running.db })
    await again.ready()
    const got = await again.fetch(
      new Request('http://router/v1/messages', { method: 'POST', body: JSON.stringify(ASK) }),
    )
    const id = got.headers.get('x-router-trace-id')
    await got.text()
    await again.close()
    const { rows } = await running.db.execute({ sql: 'select body from traces where trace_id = ?', args: [id] })
    expect(JSON.parse(String(rows[0]!.body)).final).toMatchObject({ baseline_calibrated_usd: 0.006 })
  })

  it('are a share of what is served, and none without a rate', async () => {
    running = await testRouter({ config: config(0.25) })
    for (let n = 0; n < 80; n++) await running.post('/v1/messages', ASK)
    await expect.poll(() => asked('/large')).toBeGreaterThan(5)
    expect(asked('/large')).toBeLessThan(40)
    await running.close()
    running = await testRouter({ config: config(0) })
    const before = asked('/large')
    for (let n = 0; n < 10; n++) await running.post('/v1/messages', ASK)
    await running.receipts()
    expect(asked('/large')).toBe(before)
  })

  it('that broke off measure nothing, and what they cost is counted', async () => {
    const frames = messagesFrames(['some ', 'words'])
    upstream.always((...call) => stream(call[1].url.startsWith('/large') ? frames.slice(0, 3) : frames)(...call))
    running = await testRouter({ config: config(1, 'budget = { per_day_usd = 5 }') })
    await (await running.post('/v1/messages', { ...ASK, stream: true })).text()
    await running.router.settled()
    const metrics = await (await running.router.fetch(new Request('http://router/metrics'))).text()
    const [receipt] = await running.receipts()
    const { rows } = await running.db.execute('select max(spent) as spent from router_budgets')
    const sample = Number(rows[0]!.spent) / 1e9 - (receipt!.final.total_cost_usd ?? 0)
    expect(sample).toBeGreaterThan(0)
    expect(metrics).toContain('router_shadow_samples_total{outcome="failed"} 1')
    expect(Number(/router_shadow_cost_usd_total\{.*\} (.*)/.exec(metrics)?.[1])).toBeCloseTo(sample, 9)
  })

  it('are not asked beyond a budget', async () => {
    // Room for the answers and for a few samples, each bounded at 100 output tokens of the top rung.
    running = await testRouter({ config: config(1, '[budget]\nper_day_usd = 0.03') })
    for (let n = 0; n < 10; n++) expect((await running.post('/v1/messages', ASK)).status).toBe(200)
    await running.receipts()
    expect(asked('/large')).toBeGreaterThan(0)
    expect(asked('/large')).toBeLessThan(6)
  })
})
