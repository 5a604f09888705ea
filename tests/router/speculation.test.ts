import { describe, expect, it } from 'vitest'
import type { FunctionGate } from '../../router/gates/gate-host.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import type { Script, ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const config = (threshold: number, rest: string) => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
]
gate = [{ id = "slow", kind = "function", name = "slow" }]
${rest}
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty", "slow"]
serve_threshold = ${threshold}
`
const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const LATENCY = { 'x-router-mode': 'latency' }
const say =
  (text: string): Script =>
  response => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(messagesAnswer(text)))
  }

/** A gate that speaks when the test lets it; until then the verdict is open. */
async function start(verdict: 'pass' | 'fail', { threshold = 0.9, rest = '', large = say('dear') } = {}) {
  const released = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const slow: FunctionGate = async ({ candidate }) => {
    if (candidate !== 'cheap') return { verdict: 'pass' }
    reached.resolve()
    await released.promise
    return { verdict }
  }
  upstream.always((...call) => (call[1].url.startsWith('/small') ? say('cheap') : large)(...call))
  running = await testRouter({ config: config(threshold, rest), gates: { functions: { slow } } })
  const asked = (path: string) => upstream.seen.filter(({ url }) => url.startsWith(path))
  return { running, reached: reached.promise, release: released.resolve, asked }
}
const served = (response: Response) => response.headers.get('x-router-served-rung')

describe('speculation in the latency profile', () => {
  it('asks the next rung while a close verdict is open, and serves it when the verdict is a fail', async () => {
    const { running, release, asked } = await start('fail')
    const answer = running.post('/v1/messages', ASK, LATENCY)
    await expect.poll(() => asked('/large').length).toBe(1)
    release()
    expect(served(await answer)).toBe('1')
    expect(asked('/large')).toHaveLength(1)
    const [receipt] = await running.receipts()
    expect(receipt!.attempts.map(({ rung, cause, verdict }) => [rung, cause, verdict])).toEqual([
      [0, 'start', 'fail'],
      [1, 'escalation', 'pass'],
    ])
    expect(receipt!.final).toMatchObject({ served_rung: 1, escalations: 1 })
  })

  it('acts at the threshold that nobody set, where the quick gates say only yes', async () => {
    const { running, release, asked } = await start('fail', { threshold: 0.5 })
    const answer = running.post('/v1/messages', ASK, LATENCY)
    await expect.poll(() => asked('/large').length).toBe(1)
    release()
    expect(served(await answer)).toBe('1')
  })

  it('serves the rung that it would have served, and ends the call that was not needed, with its price', async () => {
    const opened = Promise.withResolvers<void>()
    const { running, release, asked } = await start('pass', {
      large: response => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write('{"id":')
        opened.resolve()
      },
    })
    const answer = running.post('/v1/messages', ASK, LATENCY)
    await opened.promise
    release()
    expect(served(await answer)).toBe('0')
    await asked('/large')[0]!.aborted
    const [receipt] = await running.receipts()
    expect(receipt!.attempts).toMatchObject([
      { rung: 0, verdict: 'pass' },
      { rung: 1, cause: 'speculation', verdict: 'cancelled', error_class: 'speculation_cancelled' },
    ])
    expect(receipt!.final).toMatchObject({ served_rung: 0, escalations: 0 })
  })

  it('counts what a call ahead had already been given', async () => {
    const { running, release, asked } = await start('pass')
    const answer = running.post('/v1/messages', ASK, LATENCY)
    await expect.poll(() => asked('/large').length).toBe(1)
    // Long enough for its whole answer to be there.
    await expect.poll(() => upstream.sockets()).toBeGreaterThan(0)
    await new Promise(resolve => setTimeout(resolve, 50))
    release()
    await answer
    const [receipt] = await running.receipts()
    const [first, ahead] = receipt!.attempts
    expect(ahead!.cost).toBeGreaterThan(0)
    expect(receipt!.final.total_cost_usd).toBeCloseTo(first!.cost! + ahead!.cost!, 9)
  })

  it.each([
    ['in another profile', {}, { 'x-router-mode': 'balanced' }],
    ['where the budget does not cover it', { rest: '[budget]\nper_request_usd = 0.008' }, LATENCY],
  ])('asks nobody ahead %s', async (_, parts, headers) => {
    const { running, reached, release, asked } = await start('pass', parts)
    const answer = running.post('/v1/messages', ASK, headers)
    await reached
    release()
    expect(served(await answer)).toBe('0')
    expect(asked('/large')).toHaveLength(0)
  })
})
