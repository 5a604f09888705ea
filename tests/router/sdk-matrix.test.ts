import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import { expectWithin } from '../crowding.ts'
import { type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { play, type Wire } from '../upstream/wire.ts'
import { callSdk } from './sdk-clients.ts'
import {
  ALL,
  ANSWERS,
  type Asked,
  bodyOf,
  COUNTED_STREAM,
  CROSS,
  JSON_ONLY,
  type Json,
  refusal,
  type Scenario,
  wireOf,
} from './sdk-scenarios.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

/**
 * One rung on the client's own dialect. A route of two rungs, to see that nothing more is tried when a client leaves;
 * and one of a rung of the other dialect.
 */
const CONFIG = (origin: string) => `
defaults = { mode = "enforce", gates = ["non-empty"] }
price = [
  { model = "second-messages/m", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "second-chat/m", input_per_mtok = 1, output_per_mtok = 5 },
]
provider = [
  { id = "second-messages", dialect = "messages", base_url = "${origin}/second" },
  { id = "second-chat", dialect = "chat", base_url = "${origin}/second" },
]
[[route]]
match = { api = "messages", header = { x-ladder = "cross" } }
ladder = ["second-chat/m"]
[[route]]
match = { api = "chat", header = { x-ladder = "cross" } }
ladder = ["second-messages/m"]
[[route]]
match = { api = "messages", header = { x-ladder = "two" } }
ladder = ["anthropic/claude-haiku-4-5", "second-messages/m"]
[[route]]
match = { api = ["chat", "responses"], header = { x-ladder = "two" } }
ladder = ["openai/gpt-4.1-mini", "second-chat/m"]
[[route]]
match = { api = "messages" }
ladder = ["anthropic/claude-haiku-4-5"]
[[route]]
match = { api = ["chat", "responses"] }
ladder = ["openai/gpt-4.1-mini"]
`

let upstream: ScriptedUpstream
/** What the upstream plays; each test sets its own. */
let script: (asked: Asked) => Wire
beforeAll(async () => {
  upstream = await scriptedUpstream()
  upstream.always((response, { body }) => play(script(JSON.parse(String(body)) as Asked), response))
})
beforeEach(() => {
  upstream.seen.length = 0
})
afterAll(() => upstream?.close())

const env = () => ({ ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: upstream.origin })
const MODES = {
  'observe on the Node host': () => servedRouter({ env: env() }),
  'observe on the portable relay': () => servedRouter({ env: env(), direct: false }),
  enforce: () => servedRouter({ env: env(), config: CONFIG(upstream.origin) }),
}
const label = ({ dialect, name }: Scenario) => `${dialect}: ${name}`
const FORMS = [
  ['JSON', false],
  ['a stream', true],
] as const

describe.each(Object.entries(MODES))(
  'the official clients, with only the base address changed, in %s',
  (_mode, start) => {
    let router: ServedRouter
    let calls = 0
    beforeAll(async () => {
      router = await start()
    })
    afterAll(async () => {
      const { receipts } = await router.stop()
      expect(receipts).toHaveLength(calls)
    })

    describe.each(FORMS)('as %s', (_, stream) => {
      it.each(ALL.map(scenario => [label(scenario), scenario] as const))('%s', async (_label, scenario) => {
        script = asked => wireOf(scenario, asked)
        const body = bodyOf(scenario)
        // A refusal of a key or its share is remembered; each call has a key that nothing is known of.
        const apiKey = `key-${calls}`
        const direct = await callSdk(scenario.dialect, body, stream, { origin: upstream.origin, apiKey })
        const sent = upstream.seen.splice(0)
        const through = await callSdk(scenario.dialect, body, stream, { origin: router.origin, apiKey })
        calls += upstream.seen.length
        expect(through).toEqual(direct)
        expect('error' in through).toBe(scenario.status !== undefined)
        expect(upstream.seen.map(one => String(one.body))).toEqual(sent.map(one => String(one.body)))
        expect(upstream.seen.map(one => one.url)).toEqual(sent.map(one => one.url))
      })
    })

    it.each([
      ['messages', 'JSON, before the head', false],
      ['messages', 'a stream, before the head', true],
      ['chat', 'JSON, before the head', false],
      ['chat', 'a stream, before the head', true],
      ['responses', 'JSON, before the head', false],
      ['responses', 'a stream, before the head', true],
    ] as const)(
      '%s: an abort of %s ends the upstream call within a second, and nothing more is tried',
      async (dialect, _form, stream) => {
        script = () => ({ body: [], end: 'stall' })
        await abortedCall(dialect, stream)
      },
    )

    it.each(['messages', 'chat', 'responses'] as const)(
      '%s: an abort in the middle of a stream ends the upstream call within a second',
      async dialect => {
        const scenario = ANSWERS.find(one => one.dialect === dialect)!
        const frames = wireOf(scenario, COUNTED_STREAM)
        script = () => ({ ...frames, body: frames.body.slice(0, 3), end: 'stall' })
        await abortedCall(dialect, true)
      },
    )

    async function abortedCall(dialect: DialectName, stream: boolean): Promise<void> {
      const abort = new AbortController()
      const body = bodyOf(ANSWERS.find(one => one.dialect === dialect)!)
      const options = { origin: router.origin, headers: { 'x-ladder': 'two' }, signal: abort.signal }
      const ended = callSdk(dialect, body, stream, options)
      await expect.poll(() => upstream.seen.length).toBe(1)
      calls++
      const at = performance.now()
      abort.abort()
      await upstream.seen[0]!.aborted
      expectWithin(performance.now() - at, 1000)
      expect(await ended).toMatchObject({ error: expect.stringContaining('APIUserAbortError') })
      expect(upstream.seen).toHaveLength(1)
    }

    const keepsIds = async () => {
      const dialects = ['messages', 'chat', 'responses'] as const
      for (const scenario of dialects.map(dialect => refusal(dialect, 404, 'not_found_error'))) {
        script = asked => wireOf(scenario, asked)
        calls++
        const seen = await callSdk(scenario.dialect, bodyOf(scenario), false, {
          origin: router.origin,
          apiKey: `ids-${calls}`,
        })
        expect(seen).toMatchObject({ requestId: 'req_404' })
      }
    }
    it("reads the upstream's own request id", keepsIds)
  },
)

describe('the official clients in enforce', () => {
  let router: ServedRouter
  beforeAll(async () => {
    router = await MODES.enforce()
  })
  afterAll(() => router?.stop())

  it('read the same from a stream that the upstream did not send', async () => {
    for (const scenario of ANSWERS) {
      script = asked => wireOf(scenario, asked)
      const direct = await callSdk(scenario.dialect, bodyOf(scenario), true, { origin: upstream.origin })
      upstream.seen.length = 0
      script = () => wireOf(scenario, JSON_ONLY)
      const through = await callSdk(scenario.dialect, bodyOf(scenario), true, { origin: router.origin })
      expect(through, label(scenario)).toMatchObject({ final: 'final' in direct ? direct.final : 'an answer' })
    }
  })

  it('read the same as JSON where the upstream streamed unasked', async () => {
    for (const scenario of ANSWERS) {
      script = () => wireOf(scenario, JSON_ONLY)
      const direct = await callSdk(scenario.dialect, bodyOf(scenario), false, { origin: upstream.origin })
      upstream.seen.length = 0
      script = () => wireOf(scenario, COUNTED_STREAM)
      const through = await callSdk(scenario.dialect, bodyOf(scenario), false, { origin: router.origin })
      expect('answer' in through && through.answer, label(scenario)).toEqual('answer' in direct && direct.answer)
    }
  })

  it.each(CROSS.map(one => [`${one.dialect}: ${one.name}`, one] as const))(
    'read a model of the other dialect, %s',
    async (_label, { dialect, request, answer, due }) => {
      const other = dialect === 'messages' ? 'chat' : 'messages'
      const scenario: Scenario = { dialect: other, name: '', answer }
      const body = bodyOf({ dialect, name: '', answer, request })
      for (const upstreamStreams of [true, false]) {
        script = asked => wireOf(scenario, upstreamStreams ? asked : JSON_ONLY)
        const options = { origin: router.origin, headers: { 'x-ladder': 'cross' } }
        const whole = await callSdk(dialect, body, false, options)
        const streamed = await callSdk(dialect, body, true, options)
        expect(whole).toMatchObject({ answer: due })
        expect(streamed).toMatchObject({ final: withoutUsage(due) })
      }
      expect(new Set(upstream.seen.map(({ url }) => url))).toEqual(
        new Set([other === 'chat' ? '/second/v1/chat/completions' : '/second/v1/messages']),
      )
    },
  )
})

/** A chat client that did not ask for usage gets none in a stream. */
function withoutUsage(due: Json): Json {
  if (due.object === undefined) return due
  const { usage: _, ...rest } = due
  return rest
}
