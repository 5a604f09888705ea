import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseKeys } from '../../router/auth/keys.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, reset, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type ServedRouter, servedRouter } from './served-routers.ts'

const KEY = 'k'.repeat(32)

let upstream: ScriptedUpstream
/** The same router on Node's own objects and behind `fetch`. */
let routers: ServedRouter[]

beforeAll(async () => {
  upstream = await scriptedUpstream()
  const config = `
price = [{ model = "up/a", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[route]]
match = { task = "routed" }
mode = "enforce"
ladder = ["up/a"]
gates = ["non-empty"]
`
  const keys = parseKeys(`acme:${KEY}`, nativeSha256)
  const env = { ROUTER_UPSTREAM_MESSAGES: upstream.origin, ROUTER_UPSTREAM_CHAT: upstream.origin }
  routers = await Promise.all(
    [true, false].map(direct =>
      servedRouter({
        direct,
        config,
        env,
        maxBodyBytes: 100_000,
        access: { keys, reach: 'network', insecure: false, metricsOpen: false },
      }),
    ),
  )
})
afterAll(async () => {
  const left = await Promise.all(routers.map(router => router.stop()))
  await upstream.close()
  expect(left.map(({ receipts }) => [...new Set(receipts.map(one => one.tenant_id))])).toEqual([['acme'], ['acme']])
})

type Headers = Record<string, string>

/** What comes back, without what differs by its moment or belongs to the connection. */
function send(origin: string, method: string, path: string, headers: Headers, body: string) {
  return new Promise<{ status: number; headers: object; body: string }>((resolve, reject) => {
    const given = { 'content-type': 'application/json', 'x-router-key': KEY, ...headers }
    const sent = request(origin + path, { method, headers: given }, got => {
      let text = ''
      got.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      got.on('end', () => {
        const { date, connection, 'keep-alive': alive, ...rest } = got.headers
        const plain = (one: string) => one.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'an id')
        resolve({ status: got.statusCode ?? 0, headers: JSON.parse(plain(JSON.stringify(rest))), body: plain(text) })
      })
    })
    sent.on('error', reject).end(method === 'GET' ? undefined : body)
  })
}

const ASK = JSON.stringify({ model: 'auto', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] })
const CHUNKED = { 'transfer-encoding': 'chunked' }
const ROUTED = { 'x-router-task': 'routed' }

const CASES: [name: string, status: number, method: string, path: string, headers: Headers, body: string][] = [
  ['a call that is passed on', 200, 'POST', '/v1/messages', {}, ASK],
  ['a call that is routed', 200, 'POST', '/v1/messages', ROUTED, ASK],
  ['no key', 401, 'POST', '/v1/messages', { 'x-router-key': '' }, ASK],
  ['an unknown key', 401, 'POST', '/v1/chat/completions', { 'x-router-key': 'x'.repeat(32) }, ASK],
  ['an unknown key on a path without a dialect', 401, 'GET', '/v1/models', { 'x-router-key': 'x'.repeat(32) }, ''],
  ['no JSON', 400, 'POST', '/v1/messages', ROUTED, '{'],
  ['a mode that is none', 400, 'POST', '/v1/chat/completions', { 'x-router-mode': 'fast' }, ASK],
  ['a body over the limit', 413, 'POST', '/v1/messages', {}, `"${'x'.repeat(100_001)}"`],
  ['a body over the limit without its length', 413, 'POST', '/v1/messages', CHUNKED, `"${'x'.repeat(100_001)}"`],
  ['an upstream that cuts the call', 502, 'POST', '/v1/messages/count_tokens', { 'x-cut': '1' }, ASK],
  ['a routed call that is cut', 502, 'POST', '/v1/messages', { ...ROUTED, 'x-cut': '1' }, ASK],
  ['an upstream that cuts a path without a dialect', 502, 'POST', '/v1/embeddings', { 'x-cut': '1' }, '{}'],
]

describe('on a socket and through fetch alike', () => {
  it.each(CASES)('%s is answered', async (_, status, method, path, headers, body) => {
    upstream.always((response, seen, asked) =>
      (seen.rawHeaders.includes('x-cut') ? reset : answer(200, JSON.stringify(messagesAnswer('ok'))))(
        response,
        seen,
        asked,
      ),
    )
    const [direct, portable] = await Promise.all(routers.map(({ origin }) => send(origin, method, path, headers, body)))
    expect(direct!.status, direct!.body).toBe(status)
    expect(direct!.headers).toHaveProperty('x-router-trace-id', 'an id')
    expect(portable).toEqual(direct)
  })

  it('a reader that takes nothing holds its upstream up, and gets all of it when it reads on', async () => {
    const size = 24 * 1024 * 1024
    for (const { origin } of routers) {
      const taken = Promise.withResolvers<'taken'>()
      upstream.always(response => {
        response.writeHead(200, { 'content-type': 'application/octet-stream' })
        response.write(Buffer.alloc(size, 'x'), () => taken.resolve('taken'))
        response.end()
      })
      const init = { method: 'POST', headers: { 'x-router-key': KEY }, body: '{}' }
      const got = await fetch(`${origin}/v1/embeddings`, init)
      const pause = new Promise(resolve => setTimeout(resolve, 300, 'held up'))
      expect(await Promise.race([taken.promise, pause])).toBe('held up')
      expect((await got.arrayBuffer()).byteLength).toBe(size)
      expect(await taken.promise).toBe('taken')
    }
  })
})
