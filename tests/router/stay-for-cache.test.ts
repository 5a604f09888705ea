import { expect, it } from 'vitest'
import { explain } from '../../router/audit/explain.ts'
import { answer, type Script, type ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const CHEAP = 'claude-haiku-4-5'
const DEAR = 'claude-sonnet-5'

const config = (more = '') => `
price = [
  { model = "far/${CHEAP}", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "far/${DEAR}", input_per_mtok = 3, output_per_mtok = 15 },
]
provider = [{ id = "far", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["far/${CHEAP}", "far/${DEAR}"]
gates = ["non-empty"]
${more}
`

/** A provider that caches each model's prefixes, and of which one model may be away or say nothing. */
function caching({
  away = () => false,
  empty = () => false,
}: {
  away?: (model: string) => boolean
  empty?: (model: string) => boolean
} = {}): Script {
  const cached = new Map<string, number>()
  return (response, seen, request) => {
    const { model } = JSON.parse(String(seen.body)) as { model: string }
    if (away(model))
      return answer(500, '{"type":"error","error":{"type":"api_error","message":"away"}}')(response, seen, request)
    const tokens = Math.floor(seen.body.length / 4)
    const read = Math.min(cached.get(model) ?? 0, tokens)
    cached.set(model, tokens)
    const said = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: empty(model) ? [] : [{ type: 'text', text: 'Hello.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: tokens - read,
        cache_read_input_tokens: read,
        output_tokens: 100,
      },
    }
    return answer(200, JSON.stringify(said))(response, seen, request)
  }
}

/** A conversation whose turns are sent with all that was said before. */
function conversation(router: TestRouter, size = 400_000) {
  const messages: object[] = [{ role: 'user', content: 'x'.repeat(size) }]
  return {
    messages,
    async turn(headers: Record<string, string> = {}) {
      const got = await router.post('/v1/messages', { model: 'auto', max_tokens: 500, messages }, headers)
      messages.push({ role: 'assistant', content: 'Hello.' }, { role: 'user', content: 'and then?' })
      await got.text()
      return got.headers.get('x-router-served-model') ?? String(got.status)
    },
  }
}

it('stays on the rung that took over while its cache is worth more, says why, and goes back down', async () => {
  let isAway = true
  upstream.always(caching({ away: model => isAway && model === CHEAP }))
  running = await testRouter({ config: config() })
  const one = conversation(running)
  expect(await one.turn()).toBe(`far/${DEAR}`)
  isAway = false
  const served: string[] = []
  for (let turn = 0; turn < 8; turn++) served.push(await one.turn())
  const stays = served.indexOf(`far/${CHEAP}`)
  expect(stays).toBeGreaterThan(1)
  expect(stays).toBeLessThan(6)
  expect(new Set(served.slice(stays))).toEqual(new Set([`far/${CHEAP}`]))
  const receipts = await running.receipts()
  expect(receipts[1]!.policy).toMatchObject({
    start_rung: 1,
    propensity: 1,
    overrides: ['cache'],
    stay: { from: 1, to: 0, stays: true, balance_usd: 0 },
  })
  const { stay } = receipts[1]!.policy
  expect(stay!.stay_usd).toBeLessThan(stay!.go_usd)
  expect(explain(receipts[1]!).steps.find(({ step }) => step === 'stay')).toMatchObject({
    decision: 'stay on rung 1',
    because: 'rung 0 would fill a cache anew, and the session costs no more so far than if it had gone there',
  })
  expect(receipts[1 + stays]!.policy).toMatchObject({ start_rung: 0, overrides: [], stay: { stays: false } })
  expect(receipts[2 + stays]!.policy.stay).toBeUndefined()
  // No word of the prompt, and no hash of it beyond those of every receipt.
  expect(JSON.stringify(receipts)).not.toContain('xxx')
})

it('does not stay where both rungs have the conversation in their caches', async () => {
  let isEmpty = true
  upstream.always(caching({ empty: model => isEmpty && model === CHEAP }))
  running = await testRouter({ config: config() })
  const one = conversation(running)
  expect(await one.turn()).toBe(`far/${DEAR}`)
  isEmpty = false
  expect(await one.turn()).toBe(`far/${CHEAP}`)
})

it('climbs from the rung that it stays on when a gate fails there', async () => {
  let isAway = true
  let isEmpty = false
  upstream.always(caching({ away: model => isAway && model === CHEAP, empty: model => isEmpty && model === DEAR }))
  const three = config()
    .replace('ladder = [', 'max_attempts = 4\nladder = [')
    .replace(`"far/${DEAR}"]`, `"far/${DEAR}", "far/claude-opus-5"]`)
    .replace('price = [', 'price = [{ model = "far/claude-opus-5", input_per_mtok = 15, output_per_mtok = 75 },')
  running = await testRouter({ config: three })
  const one = conversation(running)
  expect(await one.turn()).toBe(`far/${DEAR}`)
  isAway = false
  isEmpty = true
  expect(await one.turn()).toBe('far/claude-opus-5')
  expect((await running.receipts())[1]).toMatchObject({
    policy: { start_rung: 1, overrides: ['cache'] },
    final: { escalations: 1 },
  })
})

it.each([
  ['the route says so', 'stay_for_cache = false', 400_000, {}],
  ['the prompt is short', '', 40, {}],
  ['each request names a session of its own', '', 400_000, { own: true }],
])('goes back down at once where %s', async (_, more, size, { own }: { own?: boolean }) => {
  let isAway = true
  upstream.always(caching({ away: model => isAway && model === CHEAP }))
  running = await testRouter({ config: config(more) })
  const one = conversation(running, size)
  expect(await one.turn()).toBe(`far/${DEAR}`)
  isAway = false
  expect(await one.turn(own ? { 'x-router-session': 'another' } : {})).toBe(`far/${CHEAP}`)
})
