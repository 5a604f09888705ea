import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import edge from '../../router/host/worker.ts'
import { listen } from '../../shared/host/serve.ts'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { responsesAnswer } from '../upstream/responses.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { callSdk } from './sdk-clients.ts'
import { servedRouter } from './served-routers.ts'

type Headers = Record<string, string>

interface Way {
  origin: string
  close(): Promise<unknown>
}

const ALLOWED = 'https://app.example.com,app://notes.example'
const KEY = 'sk-operator-of-this-router'

let folder: string
let upstream: ScriptedUpstream
const ways: Record<string, Way> = {}

/** The models of the two routes are called with the operator's key. */
const config = (mode: string) => `
price = [{ model = "mess/m", input_per_mtok = 1, output_per_mtok = 5 }, { model = "talk/m", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [
  { id = "mess", dialect = "messages", base_url = "${upstream.origin}", auth = "env", api_key_env = "OPERATOR_KEY" },
  { id = "talk", dialect = "chat", responses = true, base_url = "${upstream.origin}/v1", auth = "env", api_key_env = "OPERATOR_KEY" },
]
[[route]]
match = { api = ["chat", "responses"] }
mode = "${mode}"
ladder = ["talk/m"]
[[route]]
match = {}
mode = "${mode}"
ladder = ["mess/m"]
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-pages-'))
  upstream = await scriptedUpstream()
  upstream.always((response, seen, asked) => {
    const made = seen.url.endsWith('/responses') ? responsesAnswer : messagesAnswer
    const body = seen.url.includes('/chat/') ? chatAnswer('ok') : made('ok')
    return answer(200, JSON.stringify(body))(response, seen, asked)
  })
  const env = {
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_UPSTREAM_CHAT: upstream.origin,
    OPERATOR_KEY: KEY,
    ROUTER_LOG: 'off',
  }
  for (const mode of ['observe', 'enforce']) {
    const file = join(folder, `${mode}.toml`)
    await writeFile(file, config(mode))
    const node = (vars: Headers) =>
      serveRouter({ ...env, ROUTER_BIND: '127.0.0.1:0', ROUTER_DB: ':memory:', ROUTER_CONFIG: file, ...vars })
    ways[`the Node host, ${mode}`] = await node({ ROUTER_ALLOWED_ORIGINS: ALLOWED })
    const portable = await servedRouter({
      direct: false,
      config: config(mode),
      env,
      access: {
        keys: [],
        reach: 'loopback',
        insecure: false,
        metricsOpen: false,
        allowedOrigins: ALLOWED.split(','),
      },
    })
    ways[`the portable app, ${mode}`] = { origin: portable.origin, close: portable.stop }
    const open = await node({ ROUTER_BIND: '0.0.0.0:0', ROUTER_ALLOWED_ORIGINS: ALLOWED })
    ways[`a network address, ${mode}`] = { ...open, origin: open.origin.replace('0.0.0.0', '127.0.0.1') }
  }
  const vars = { ...env, ROUTER_CONFIG_TEXT: config('enforce'), ROUTER_ALLOWED_ORIGINS: ALLOWED }
  const served = await listen({
    bind: { host: '127.0.0.1', port: 0 },
    fetch: asked => edge.fetch(asked, vars, { waitUntil: () => undefined }),
    bodyMs: 60_000,
  })
  ways['the edge host'] = { origin: served.origin, close: () => served.close(1000) }
})
beforeEach(() => {
  upstream.seen.length = 0
})
afterAll(async () => {
  for (const way of Object.values(ways)) await way.close()
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

const NAMES = [
  ...['the Node host, observe', 'the Node host, enforce', 'the portable app, observe', 'the portable app, enforce'],
  ...['a network address, observe', 'a network address, enforce', 'the edge host'],
]
const onLoopback = (name: string) => /^the (?:Node|portable)/.test(name)

const CALLS: [method: string, path: string][] = [
  ['POST', '/v1/messages'],
  ['POST', '/v1/chat/completions'],
  ['POST', '/v1/messages/count_tokens'],
  ['GET', '/v1/models'],
  ['GET', '/v1/models/m'],
  ['POST', '/v1/responses'],
  ['POST', '/v1/embeddings'],
  ['POST', '/v1/files'],
  ['POST', '/v1/completions'],
  ['GET', '/v1/messages/batches/b/results'],
]

const BODY = JSON.stringify({ model: 'auto', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] })

/** A request that a browser sends without a preflight, since its type is `text/plain`. */
function send(origin: string, method: string, path: string, headers: Headers) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: string }>((resolve, reject) => {
    const type = method === 'POST' && { 'content-type': 'text/plain', 'content-length': BODY.length }
    const sent = request(origin + path, { method, headers: { ...type, ...headers } }, got => {
      let body = ''
      got.setEncoding('utf8').on('data', (piece: string) => {
        body += piece
      })
      got.on('end', () => resolve({ status: got.statusCode ?? 0, headers: got.headers, body }))
    })
    sent.on('error', reject).end(method === 'POST' ? BODY : undefined)
  })
}

const PAGES: Headers[] = [
  { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
]
const REBOUND: Headers[] = [{ host: 'evil.example' }, { host: 'evil.example:8080', origin: 'http://evil.example:8080' }]

describe.each(NAMES)('%s', name => {
  it('lets no page of another site spend a key', async () => {
    for (const headers of onLoopback(name) ? [...PAGES, ...REBOUND] : PAGES) {
      for (const [method, path] of CALLS) {
        const got = await send(ways[name]!.origin, method, path, headers)
        const at = `${method} ${path} ${JSON.stringify(headers)}`
        expect([got.status, got.headers['x-should-retry']], at).toEqual([403, 'false'])
        const { error } = JSON.parse(got.body) as { error: { message: string } }
        expect(error.message, at).toContain('ROUTER_ALLOWED_ORIGINS')
      }
    }
    expect(upstream.seen).toHaveLength(0)
  })

  it('refuses in the dialect of the call', async () => {
    const { origin } = ways[name]!
    const messages = await send(origin, 'POST', '/v1/messages', PAGES[0]!)
    expect(JSON.parse(messages.body)).toMatchObject({ type: 'error', error: { type: 'permission_error' } })
    const chat = await send(origin, 'POST', '/v1/chat/completions', PAGES[0]!)
    expect(JSON.parse(chat.body)).toMatchObject({ error: { type: 'permission_error', code: 'router_scope' } })
    expect(chat.headers['x-router-trace-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('answers programs by every name of this machine, its own page, and pages that are allowed', async () => {
    const { port } = new URL(ways[name]!.origin)
    const ordinary: Headers[] = [
      {},
      ...['127.0.0.1', 'localhost', '[::1]'].map(host => ({ host: `${host}:${port}` })),
      { host: 'localhost' },
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'cors' },
      { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin' },
      { origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' },
      { origin: 'app://notes.example', 'sec-fetch-site': 'cross-site' },
      { host: 'app.example.com', 'x-forwarded-for': '192.0.2.7' },
      ...(onLoopback(name) ? [] : [{ host: 'router.example.net' }]),
    ]
    for (const headers of ordinary) {
      for (const [method, path] of CALLS) {
        const got = await send(ways[name]!.origin, method, path, headers)
        expect(got.status, `${method} ${path} ${JSON.stringify(headers)}: ${got.body}`).toBe(200)
      }
    }
    // A router that routes answers for its own models.
    const isOwn = (path: string) => path.startsWith('/v1/models') && !name.endsWith('observe')
    expect(upstream.seen).toHaveLength(ordinary.length * CALLS.filter(([, path]) => !isOwn(path)).length)
  })

  it.each(['messages', 'chat'] as const)('answers the official client of %s', async dialect => {
    const { origin } = ways[name]!
    expect(await callSdk(dialect, JSON.parse(BODY) as object, false, { origin })).toHaveProperty('answer')
  })
})
