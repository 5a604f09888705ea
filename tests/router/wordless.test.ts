import { describe, expect, it } from 'vitest'
import { observation } from '../../router/observe/observation.ts'
import { bodyRoom } from '../../router/proxy/handle-call.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { eventually } from '../eventually.ts'
import { chatFrames, messagesAnswer } from '../upstream/answers.ts'
import { event, messageFrames, messageOf } from '../upstream/frames.ts'
import { answer, type Script, type ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'
import { servedRouter } from './served-routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const [OPENED = ''] = messageFrames(messageOf([]))
const BLOCK = event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
const emptyDelta = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: '' } })

/** Sends the beginning at once, then the same piece every 20 ms, and the end after some of them. */
function drip(begin: string, piece: string, times = Number.POSITIVE_INFINITY, end = ''): Script {
  return response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(begin)
    let sent = 0
    const timer = setInterval(() => {
      if (sent++ < times) return response.write(piece)
      clearInterval(timer)
      return response.end(end)
    }, 20)
    response.on('close', () => clearInterval(timer))
  }
}

const config = (limits: string, ladder: readonly string[], timeouts = '') => `
limits = { ${limits} }
price = [${ladder.map(model => `{ model = "${model}", input_per_mtok = 1, output_per_mtok = 5 }`).join(', ')}]
provider = [${ladder
  .map(model => model.split('/')[0]!)
  .map(id => {
    const own = id.endsWith('-a') && timeouts !== '' ? `, timeouts = { ${timeouts} }` : ''
    return `{ id = "${id}", dialect = "${id.split('-')[0]}", base_url = "${upstream.origin}/${id}"${own} }`
  })
  .join(', ')}]
[[route]]
mode = "enforce"
ladder = [${ladder.map(model => `"${model}"`).join(', ')}]
gates = ["non-empty"]
`

describe('in enforce, an upstream that keeps its stream open without a word', () => {
  it.each([
    ['comments', ': ping\n\n', ': ping\n\n'],
    ['pings', PING, PING],
    ['pings after its first event', OPENED, PING],
    ['empty pieces', OPENED + BLOCK, emptyDelta],
  ])('is given up after content_ms, whatever the total (%s)', async (_, begin, piece) => {
    upstream.always(drip(begin, piece))
    running = await testRouter({ config: config('content_ms = 200', ['messages-a/m']) })
    const since = performance.now()
    const got = await running.post('/v1/messages', { ...ASK, stream: true })
    expect([got.status, await got.json()]).toMatchObject([502, { type: 'error', error: { type: 'api_error' } }])
    expect(performance.now() - since).toBeGreaterThan(190)
    await upstream.seen[0]!.aborted
    expect(await running.receipts()).toMatchObject([
      { attempts: [{ verdict: 'error', error_class: 'timeout' }], final: { served_from: 'error', status: 502 } },
    ])
  })

  it('of the chat dialect as well, and the next rung answers', async () => {
    const chunk = chatFrames([''])[0] ?? ''
    upstream.always((response, seen, request) => {
      const script = seen.url.startsWith('/chat-a')
        ? drip(chunk, chunk)
        : answer(200, JSON.stringify(messagesAnswer('fine')))
      return script(response, seen, request)
    })
    const text = config('content_ms = 600000', ['chat-a/m', 'messages-b/m'], 'content_ms = 150')
    running = await testRouter({ config: text })
    const got = await running.post('/v1/messages', ASK)
    expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '1'])
    expect(await running.receipts()).toMatchObject([{ attempts: [{ error_class: 'timeout' }, { verdict: 'pass' }] }])
  })

  it('is not one that thinks aloud, however long it takes', async () => {
    const thinking = messageFrames(
      messageOf([
        { type: 'thinking', thinking: '', signature: 's' },
        { type: 'text', text: 'fine' },
      ]),
    )
    const at = thinking.findIndex(frame => frame.includes('content_block_start')) + 1
    const word = event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'hm ' } })
    upstream.always(drip(thinking.slice(0, at).join(''), word, 40, thinking.slice(at).join('')))
    running = await testRouter({ config: config('content_ms = 400', ['messages-a/m']) })
    const got = await running.post('/v1/messages', ASK)
    expect([got.status, await got.text()]).toEqual([200, expect.stringContaining('fine')])
  })
})

describe.each([
  ['the Node host', true],
  ['the portable relay', false],
])('in observe on %s, an upstream that pings for ever', (_, direct) => {
  const open = (limits: string) =>
    servedRouter({
      config: `limits = { ${limits} }`,
      env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
      direct,
    })
  const ask = (origin: string, signal?: AbortSignal) =>
    fetch(`${origin}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ ...ASK, stream: true }),
      headers: { 'content-type': 'application/json' },
      ...(signal && { signal }),
    })

  it('is passed on as it is, past every limit of an enforced call, until the client leaves', async () => {
    upstream.always(drip(OPENED, ': ping\n\n'))
    const router = await open('content_ms = 100, total_ms = 100')
    const leave = new AbortController()
    const got = await ask(router.origin, leave.signal)
    const reader = got.body!.getReader()
    let heard = ''
    while (heard.split(': ping').length < 15) heard += new TextDecoder().decode((await reader.read()).value)
    leave.abort()
    await upstream.seen[0]!.aborted
    await eventually(() => expect(upstream.sockets()).toBe(0))
    const { receipts } = await router.stop()
    expect(receipts).toMatchObject([{ attempts: [{ error_class: 'client_abort' }] }])
  })

  it('is cut after observe_total_ms where the operator sets one', async () => {
    upstream.always(drip(OPENED, ': ping\n\n'))
    const router = await open('observe_total_ms = 200')
    const got = await ask(router.origin)
    expect(got.status).toBe(200)
    await expect(got.text()).rejects.toThrow()
    await upstream.seen[0]!.aborted
    upstream.always(answer(200, JSON.stringify(messagesAnswer('fine'))))
    expect(await (await ask(router.origin)).text()).toContain('fine')
    const { receipts } = await router.stop()
    expect(receipts.map(({ attempts }) => attempts[0]?.error_class)).toEqual(['timeout', undefined])
  })
})

it('what is kept of an observed stream has a bound, however long it pings', () => {
  const arrival = { traceId: 't', tenantId: 'default', routeIx: null, headers: [] }
  const observed = observation(
    { ...arrival, api: 'messages' },
    bodyRoom(1000).open({ maxHeldBytes: undefined, maxBodyBytes: 1000 }),
    { clock: systemClock, hashing: { sha256, salt: new Uint8Array(32) } },
  )
  observed.called()
  observed.head(200, [['content-type', 'text/event-stream']], true)
  for (const frame of messageFrames(messageOf([{ type: 'text', text: 'hi' }])).slice(0, -1)) observed.chunk(utf8(frame))
  const ping = utf8(': ping\n\n')
  const pings = () => {
    for (let n = 0; n < 200_000; n++) observed.chunk(ping)
  }
  pings()
  const before = process.memoryUsage().arrayBuffers
  pings()
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 * 1024)
  observed.chunk(utf8(event('message_stop', {})))
  observed.ended('complete')
  const content = observed.call().answer?.content
  expect(content && 'meter' in content && content.meter.reading()).toMatchObject({ finish: 'end_turn', complete: true })
})
