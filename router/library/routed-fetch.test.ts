import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TestRouter, testRouter } from '../../tests/router/routers.ts'
import { callSdk } from '../../tests/router/sdk-clients.ts'
import { chatAnswer, chatFrames, messagesAnswer, messagesFrames } from '../../tests/upstream/answers.ts'
import {
  answer,
  type ScriptedUpstream,
  scriptedUpstream,
  silence,
  steppedStream,
  stream,
} from '../../tests/upstream/scripted.ts'
import { routedFetch } from './routed-fetch.ts'

let upstream: ScriptedUpstream
let running: TestRouter
let passed: string[]
const fallback: typeof fetch = async input => {
  passed.push(input instanceof Request ? input.url : String(input))
  return new Response('{"object":"list","data":[]}', { headers: { 'content-type': 'application/json' } })
}

const CONFIG = (origin: string) => `
price = [
  { model = "m/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "m/large", input_per_mtok = 1, output_per_mtok = 5 },
]
provider = [{ id = "m", dialect = "messages", base_url = "${origin}" }]
[[route]]
match = { api = "messages" }
mode = "enforce"
ladder = ["m/small", "m/large"]
gates = ["non-empty"]
`

beforeEach(async () => {
  passed = []
  upstream = await scriptedUpstream()
  running = await testRouter({
    config: CONFIG(upstream.origin),
    env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: upstream.origin },
  })
})
afterEach(async () => {
  await running.close()
  await upstream.close()
})

const routed = (options: Parameters<typeof routedFetch>[1] = {}) =>
  routedFetch(running.router, { fallback, ...options })
const BODY = { model: 'auto', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
const ASKED = {
  messages: { json: JSON.stringify(messagesAnswer('one')), frames: messagesFrames(['o', 'ne']) },
  chat: { json: JSON.stringify(chatAnswer('one')), frames: chatFrames(['o', 'ne']) },
}
/** Nothing listens there: what is answered was routed in this process. */
const NOWHERE = 'https://provider.invalid'

describe.each(['messages', 'chat'] as const)('routedFetch as the fetch of the official %s client', dialect => {
  it.each([false, true])('answers what the client reads directly, streamed: %s', async streamed => {
    const { json, frames } = ASKED[dialect]
    upstream.always(streamed ? stream(frames) : answer(200, json, { 'request-id': 'r', 'x-request-id': 'r' }))
    const direct = await callSdk(dialect, BODY, streamed, { origin: upstream.origin })
    const through = await callSdk(dialect, BODY, streamed, { origin: NOWHERE, fetch: routed() })
    const { requestId: _direct, ...due } = direct as { requestId?: unknown }
    const { requestId: _through, ...got } = through as { requestId?: unknown }
    expect(got).toEqual(due)
    expect(Object.keys(got)).toContain(streamed ? 'final' : 'answer')
    expect(passed).toEqual([])
    const receipts = await running.receipts()
    expect(receipts.map(({ mode }) => mode)).toEqual(
      Array(streamed ? 2 : 1).fill(dialect === 'chat' ? 'observe' : 'enforce'),
    )
  })

  it('gives the client the errors of the upstream', async () => {
    const body =
      dialect === 'messages'
        ? { type: 'error', error: { type: 'not_found_error', message: 'no' } }
        : { error: { message: 'no', type: 'not_found_error' } }
    upstream.always(answer(404, JSON.stringify(body)))
    const seen = await callSdk(dialect, BODY, false, { origin: NOWHERE, fetch: routed() })
    expect(seen).toMatchObject({ error: expect.stringContaining('NotFoundError'), status: 404 })
  })

  it('passes an abort before the head on to the upstream, and tries nothing more', async () => {
    upstream.always(silence)
    const abort = new AbortController()
    const call = callSdk(dialect, BODY, false, { origin: NOWHERE, fetch: routed(), signal: abort.signal })
    await expect.poll(() => upstream.seen.length).toBe(1)
    abort.abort()
    expect(await call).toMatchObject({ error: expect.stringContaining('APIUserAbortError') })
    await upstream.seen[0]!.aborted
    expect(await running.receipts()).toMatchObject([{ final: { served_from: 'aborted', status: 499 } }])
    expect(upstream.seen).toHaveLength(1)
  })
})

describe('routedFetch', () => {
  const post = (fetchFn: typeof fetch, path: string, init: RequestInit = {}) =>
    fetchFn(NOWHERE + path, { method: 'POST', body: JSON.stringify(BODY), ...init })

  it('ends a stream that is being read when its caller aborts, for the reader and for the upstream', async () => {
    const steps = steppedStream()
    upstream.queue(steps.script)
    const abort = new AbortController()
    const got = await post(routed(), '/v1/chat/completions', { signal: abort.signal })
    await steps.send('data: {}\n\n')
    const reader = got.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: {}\n\n')
    const waiting = reader.read()
    const reason = new Error('enough')
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await upstream.seen[0]!.aborted
    expect(await running.receipts()).toMatchObject([{ final: { served_from: 'aborted', status: 499 } }])
  })

  it('rejects at once with the reason of an abort that came first, and calls nobody', async () => {
    const reason = new Error('never mind')
    await expect(post(routed(), '/v1/messages', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(await running.receipts()).toEqual([])
    expect(upstream.seen).toEqual([])
  })

  it('ends the upstream call when the reader cancels', async () => {
    const steps = steppedStream()
    upstream.queue(steps.script)
    const got = await post(routed(), '/v1/chat/completions')
    await steps.send('data: {}\n\n')
    const reader = got.body!.getReader()
    await reader.read()
    await reader.cancel()
    await upstream.seen[0]!.aborted
  })

  it('adds session and mode where a call names none of its own', async () => {
    upstream.always(answer(200, JSON.stringify(messagesAnswer('one'))))
    const own = routed({ session: 's-1', mode: 'observe' })
    const modeOf = async (answered: Response) => {
      await answered.text()
      return answered.headers.get('x-router-mode')
    }
    expect(await modeOf(await post(own, '/v1/messages'))).toBe('observe')
    const headers = { 'x-router-session': 's-2', 'x-router-mode': 'quality' }
    expect(await modeOf(await post(own, '/v1/messages', { headers }))).toBe('quality')
    const receipts = await running.receipts()
    expect(receipts.map(({ mode, session_id }) => [mode, session_id])).toEqual([
      ['observe', 's-1'],
      ['enforce', 's-2'],
    ])
  })

  it('routes by path whatever the host and the form of the request, and leaves everything else to the fallback', async () => {
    upstream.always(answer(200, JSON.stringify(messagesAnswer('one'))))
    const url = new URL(`${NOWHERE}/v1/messages?beta=true`)
    const init = { method: 'POST', body: JSON.stringify(BODY) }
    for (const input of [url, url.href, new Request(url, init)]) {
      const got = await routed()(input, input instanceof Request ? undefined : init)
      expect(await got.json()).toMatchObject({ type: 'message' })
    }
    expect(upstream.seen.map(one => one.url)).toEqual(Array(3).fill('/v1/messages?beta=true'))
    const other = ['/v1/models', '/v1/messages/count_tokens', '/v1/embeddings', '/v1/messages/', '/'].map(
      path => NOWHERE + path,
    )
    for (const address of other) await routed()(address)
    await routed()('not an address')
    expect(passed).toEqual([...other, 'not an address'])
    expect(upstream.seen).toHaveLength(3)
  })
})
