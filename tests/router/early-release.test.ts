import { describe, expect, it } from 'vitest'
import { chatFrames, messagesFrames } from '../upstream/answers.ts'
import { type ScriptedUpstream, steppedStream, stream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const start = async (route: string, gates = '["non-empty"]', dialect = 'messages') => {
  running = await testRouter({
    config: `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "${dialect}", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "${dialect}", base_url = "${upstream.origin}/large", auth = "none" },
]
stream = { keepalive_after_ms = 1000, keepalive_every_ms = 1000 }
gate = [{ id = "short", kind = "length", max_chars = 8 }]
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ${gates}
${route}
`,
  })
  return running
}

const ASK = { model: 'auto', max_tokens: 100, stream: true, messages: [{ role: 'user', content: 'hi' }] }

/** Reads what has come, as far as a text. */
function reading(response: Response) {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let got = ''
  return {
    async until(text: string): Promise<string> {
      while (!got.includes(text)) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`the stream ended before ${text}: ${got}`)
        got += decoder.decode(value, { stream: true })
      }
      return got
    },
    async rest(): Promise<string> {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return got
        got += decoder.decode(value, { stream: true })
      }
    },
    cancel: () => reader.cancel(),
  }
}

describe('early release', () => {
  it('sends frames while the upstream is still writing, and the same bytes as later', async () => {
    const { post, receipts } = await start('early_release = true')
    const frames = messagesFrames(['one ', 'two'])
    const stepped = steppedStream()
    upstream.queue(stepped.script)
    const asked = post('/v1/messages', ASK)
    for (const frame of frames.slice(0, 3)) await stepped.send(frame)
    const response = await asked
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(response.headers.get('x-router-served-rung')).toBe('0')
    expect(response.headers.get('x-router-served-model')).toBe('small/cheap')
    expect(response.headers.get('x-router-cost-usd')).toBeNull()
    const body = reading(response)
    expect(await body.until('one ')).toBe(frames.slice(0, 3).join(''))
    for (const frame of frames.slice(3)) await stepped.send(frame)
    await stepped.end()
    expect(await body.rest()).toBe(frames.join(''))
    const [receipt] = await receipts()
    expect(receipt).toMatchObject({
      attempts: [{ rung: 0, gate: 'pass', verdict: 'pass', usage_source: 'provider' }],
      final: { served_rung: 0, served_from: 'attempt', status: 200, response_id: 'msg_01' },
    })
    expect(receipt!.final.truncated).toBeUndefined()
  })

  it('holds everything until a gate has something to say, and climbs where it says no', async () => {
    const { post, receipts } = await start('early_release = true')
    upstream.queue(stream(messagesFrames([' ', '  '])), stream(messagesFrames(['better'])))
    expect(await (await post('/v1/messages', ASK)).text()).toBe(messagesFrames(['better']).join(''))
    expect(await receipts()).toMatchObject([{ final: { served_rung: 1, escalations: 1 } }])
  })

  it('ends what a gate fails later with an error event, and never sends the frame it failed with nor an end', async () => {
    const { post, receipts } = await start('early_release = true', '["non-empty", "short"]')
    upstream.queue(stream(messagesFrames(['fine ', 'much too long', ' and on'])))
    const body = await (await post('/v1/messages', ASK)).text()
    expect(body).toContain('fine ')
    expect(body).not.toContain('too long')
    expect(body).toMatch(/event: error\ndata: \{"type":"error"[^\n]*\n\n$/)
    expect(body).not.toContain('message_stop')
    expect(upstream.seen).toHaveLength(1)
    expect(await receipts()).toMatchObject([
      {
        attempts: [{ gate: 'fail', verdict: 'fail' }],
        final: { served_from: 'error', served_rung: -1, status: 200, truncated: true },
      },
    ])
  })

  it('takes an answer that ends as a refusal for failed, and sends no end of it', async () => {
    const { post, receipts } = await start('early_release = true')
    upstream.queue(stream(messagesFrames(['I ', 'cannot']).map(frame => frame.replace('end_turn', 'refusal'))))
    const body = await (await post('/v1/messages', ASK)).text()
    expect(body).toContain('cannot')
    expect(body).toMatch(/event: error\ndata: [^\n]*\n\n$/)
    expect(body).not.toContain('refusal')
    expect(await receipts()).toMatchObject([{ attempts: [{ verdict: 'fail' }], final: { truncated: true } }])
  })

  it('ends an answer that the upstream breaks off with an error event, and calls no other rung', async () => {
    const { post, receipts } = await start('early_release = true', '["non-empty"]', 'chat')
    const stepped = steppedStream()
    upstream.queue(stepped.script)
    const asked = post('/v1/chat/completions', ASK)
    for (const frame of chatFrames(['one ', 'two']).slice(0, 2)) await stepped.send(frame)
    const body = reading(await asked)
    await body.until('one ')
    await stepped.reset()
    const whole = await body.rest()
    expect(whole).toMatch(/data: \{"error":\{[^\n]*\n\n$/)
    expect(whole).not.toContain('[DONE]')
    expect(upstream.seen).toHaveLength(1)
    expect(await receipts()).toMatchObject([
      { attempts: [{ verdict: 'error', error_class: 'transport' }], final: { served_from: 'error', truncated: true } },
    ])
  })

  it('aborts the upstream when a client leaves in the middle, and records it', async () => {
    const { post, receipts } = await start('early_release = true')
    const stepped = steppedStream()
    upstream.queue(stepped.script)
    const asked = post('/v1/messages', ASK)
    for (const frame of messagesFrames(['one ']).slice(0, 3)) await stepped.send(frame)
    const body = reading(await asked)
    await body.until('one ')
    await body.cancel()
    await upstream.seen[0]!.aborted
    expect(await receipts()).toMatchObject([
      {
        attempts: [{ verdict: 'cancelled', usage_source: 'estimated' }],
        final: { served_from: 'aborted', status: 499 },
      },
    ])
  })

  it('goes on with keep-alives after a head that had to go out before', async () => {
    const { post } = await start('early_release = true')
    const frames = messagesFrames(['one'])
    const stepped = steppedStream()
    upstream.queue(stepped.script)
    const body = reading(await post('/v1/messages', ASK))
    await body.until('event: ping')
    for (const frame of frames.slice(0, 3)) await stepped.send(frame)
    await body.until('one')
    for (const frame of frames.slice(3)) await stepped.send(frame)
    await stepped.end()
    expect((await body.rest()).replaceAll('event: ping\ndata: {"type":"ping"}\n\n', '')).toBe(frames.join(''))
  })

  it('gates the whole first where a gate needs the whole, where it is not asked for, and for several choices', async () => {
    for (const [route, gates, ask] of [
      ['early_release = true', '["non-empty", "json-valid"]', ASK],
      ['', '["non-empty"]', ASK],
      ['early_release = true', '["non-empty"]', { ...ASK, n: 2 }],
    ] as const) {
      const { post, close } = await start(route, gates, 'chat')
      const stepped = steppedStream()
      upstream.queue(stepped.script)
      const body = reading(await asked(post, ask, stepped))
      expect(await body.until(': keep-alive')).toBe(': keep-alive\n\n')
      await body.cancel()
      await close()
    }
    running = undefined
  })

  it('always flows on the last rung of a route without gates', async () => {
    const { post } = await start('start_rung = 1', '[]')
    const stepped = steppedStream()
    upstream.queue(stepped.script)
    const waiting = post('/v1/messages', ASK)
    for (const frame of messagesFrames(['']).slice(0, 2)) await stepped.send(frame)
    const response = await waiting
    expect(response.headers.get('x-router-served-rung')).toBe('1')
    await reading(response).cancel()
  })
})

async function asked(
  post: TestRouter['post'],
  ask: object,
  stepped: ReturnType<typeof steppedStream>,
): Promise<Response> {
  const waiting = post('/v1/chat/completions', ask)
  for (const frame of chatFrames(['{"a":1}']).slice(0, 2)) await stepped.send(frame)
  return waiting
}
