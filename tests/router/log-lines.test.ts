import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, reset, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let running: ServedRouter | undefined

beforeEach(async () => {
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  await running?.stop()
  running = undefined
  await upstream.close()
})

const CONFIG = (mode: string) => `
price = [{ model = "up/a", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = {}
mode = "${mode}"
ladder = ["up/a"]
gates = ["non-empty"]
`
const CANARY = 'do not write this down'
const ask = async () => {
  const got = await fetch(new URL('/v1/messages?beta=true', running!.origin), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-ant-canary-0123456789abcdef' },
    body: JSON.stringify({ model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: CANARY }] }),
  })
  await got.text()
  return got.headers.get('x-router-trace-id')
}
const lines = () => running!.logs.map(line => JSON.parse(line) as Record<string, unknown>)
const said = (message: string) => lines().filter(line => String(line.message).startsWith(message))

describe('the log', () => {
  it('has one line for a routed call, with its ids, rung, status, time and cost, and nothing of what was said', async () => {
    running = await servedRouter({ config: CONFIG('enforce') })
    upstream.always(answer(200, JSON.stringify(messagesAnswer('an answer that is nobody else’s'))))
    const id = await ask()
    await expect
      .poll(() => said('a call was routed'))
      .toMatchObject([
        {
          level: 'info',
          target: 'router.calls',
          trace_id: id,
          tenant_id: 'default',
          route: 0,
          start: 0,
          attempts: 1,
          rung: 0,
          model: 'up/a',
          served_from: 'attempt',
          status: 200,
          cost_usd: 0.0066,
          ms: expect.any(Number),
        },
      ])
    expect(running.logs.join()).not.toMatch(/do not write this down|nobody else|canary-0123/)
  })

  it.each([true, false])('has one line for a call that was passed on (direct: %s)', async direct => {
    running = await servedRouter({
      direct,
      config: CONFIG('observe'),
      env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    })
    upstream.always(answer(429, '{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'))
    const id = await ask()
    await expect
      .poll(() => said('a call was passed on'))
      .toMatchObject([
        {
          level: 'info',
          target: 'router.calls',
          trace_id: id,
          tenant_id: 'default',
          route: 0,
          method: 'POST',
          path: '/v1/messages',
          status: 429,
          ended: 'complete',
          ms: expect.any(Number),
        },
      ])
    expect(running.logs.join()).not.toContain(CANARY)
  })

  it('warns of an upstream that limits or refuses, once a minute, and of a breaker that opens', async () => {
    running = await servedRouter({ config: CONFIG('enforce') })
    upstream.always(answer(500, '{"type":"error","error":{"type":"api_error","message":"down"}}'))
    for (let n = 0; n < 8; n++) await ask()
    expect(said('an upstream refuses calls')).toMatchObject([
      { level: 'warn', provider: 'up', model: 'up/a', status: 500, error_class: 'upstream_5xx' },
    ])
    expect(said('a provider is not called')).toMatchObject([{ level: 'warn', provider: 'up' }])
    await running.stop()
    running = await servedRouter({ config: CONFIG('enforce') })
    upstream.always(
      answer(429, '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}', { 'retry-after': '60' }),
    )
    for (let n = 0; n < 3; n++) await ask()
    expect(said('an upstream refuses calls')).toMatchObject([{ status: 429, error_class: 'rate_limited' }])
    expect(said('a key is not called')).toHaveLength(1)
  })

  it.each(['enforce', 'observe'])(
    'warns once a minute of an upstream that is away, however many calls fail (%s)',
    async mode => {
      running = await servedRouter({ config: CONFIG(mode), env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
      upstream.always(reset)
      const ids = []
      for (let n = 0; n < 12; n++) ids.push(await ask())
      await expect.poll(() => said('a call was').length).toBe(12)
      const warned = lines().filter(({ level }) => level === 'warn')
      expect(warned.filter(({ message }) => !String(message).startsWith('a provider is not called'))).toHaveLength(1)
      if (mode === 'observe') expect(warned[0]).toMatchObject({ trace_id: ids[0] })
    },
  )
})
