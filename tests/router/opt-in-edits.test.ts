import { describe, expect, it } from 'vitest'
import { chatAnswer, chatFrames, messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const start = async (route = '') => {
  running = await testRouter({
    config: `
price = [
  { model = "talk/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mess/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mess/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "talk", dialect = "chat", base_url = "${upstream.origin}/v1", auth = "none", inject_usage = true },
  { id = "mess", dialect = "messages", base_url = "${upstream.origin}", auth = "none" },
]
[[route]]
match = { api = "chat" }
mode = "enforce"
ladder = ["talk/cheap"]
gates = ["non-empty"]
${route}
[[route]]
match = {}
mode = "enforce"
ladder = ["mess/cheap", "mess/best"]
gates = ["non-empty"]
thinking_policy = "strip"
`,
  })
  return running
}

const CHAT = { model: 'auto', stream: true, messages: [{ role: 'user', content: 'hi' }] }

describe('inject_usage', () => {
  it.each(['', 'early_release = true'])(
    'has exact costs, and the client sees what it would have seen without (%s)',
    async route => {
      const { post, receipts } = await start(route)
      upstream.queue(stream(chatFrames(['one ', 'two'], { usage: true })))
      const got = await post('/v1/chat/completions', { ...CHAT, stream_options: { include_obfuscation: false } })
      expect(await got.text()).toBe(chatFrames(['one ', 'two']).join(''))
      expect(JSON.parse(String(upstream.seen[0]!.body))).toEqual({
        ...CHAT,
        model: 'cheap',
        stream_options: { include_obfuscation: false, include_usage: true },
      })
      // 200 uncached, 1000 cached and 50 output tokens of the scripted answer.
      expect(await receipts()).toMatchObject([
        {
          attempts: [
            { usage_source: 'provider', cost: 0.00145, tokens: { uncached: 200, cache_read: 1000, output: 50 } },
          ],
        },
      ])
    },
  )

  it('changes nothing for a client that asks itself, or reads no stream', async () => {
    const { post } = await start()
    const frames = chatFrames(['one'], { usage: true })
    upstream.queue(stream(frames), answer(200, JSON.stringify(chatAnswer('one'))))
    const asked = await post('/v1/chat/completions', { ...CHAT, stream_options: { include_usage: true } })
    expect(await asked.text()).toBe(frames.join(''))
    const { stream: _, ...plain } = CHAT
    expect(await (await post('/v1/chat/completions', plain)).text()).toBe(JSON.stringify(chatAnswer('one')))
    expect(JSON.parse(String(upstream.seen[1]!.body))).toEqual({ ...plain, model: 'cheap' })
  })

  it('leaves usage out of a stream that is made from an answer that was none', async () => {
    const { post } = await start()
    upstream.queue(answer(200, JSON.stringify(chatAnswer('one'))))
    const body = await (await post('/v1/chat/completions', CHAT)).text()
    expect(body).toContain('one')
    expect(body).not.toContain('usage')
  })
})

describe('thinking_policy = "strip"', () => {
  it('sends no thinking of earlier turns, starts at the cheapest rung, and says so with two hashes', async () => {
    const { post, receipts } = await start()
    upstream.queue(answer(200, JSON.stringify(messagesAnswer('good'))))
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'text', text: 'yes' },
        ],
      },
      { role: 'user', content: 'go on' },
    ]
    const response = await post('/v1/messages', { model: 'auto', max_tokens: 10, messages })
    expect(response.headers.get('x-router-served-rung')).toBe('0')
    expect(String(upstream.seen[0]!.body)).toBe(
      JSON.stringify({
        model: 'cheap',
        max_tokens: 10,
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: [{ type: 'text', text: 'yes' }] },
          { role: 'user', content: 'go on' },
        ],
      }),
    )
    const [receipt] = await receipts()
    expect(receipt!.request.body_sha256_in).not.toBe(receipt!.request.body_sha256_out)
    expect(receipt!.policy.overrides).toEqual([])
    expect(receipt!.request.features.has_thinking_history).toBe(true)
  })
})
