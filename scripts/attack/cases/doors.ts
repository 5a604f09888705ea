import { type Attack, type Attempt, statusOf, unless } from '../attempt.ts'
import { raw, statuses } from '../raw.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']
const RUNTIME_PATHS = [
  ...[
    '/v1/runs',
    '//v1/runs',
    '/v1//runs',
    '/v1/./runs',
    '/v1/x/../runs',
    '/v1/%72uns',
    '/v1/runs/',
    '/v1/runs?',
    '/V1/RUNS',
  ],
  ...[
    '/healthz/../v1/runs',
    '/healthz/%2e%2e/v1/runs',
    '/docs/../v1/runs',
    '/v1/runs%00',
    '/v1/runs%2f',
    '/v1/runs;a=b',
    '/v1\\runs',
  ],
  ...[
    '/v1/agents',
    '/v1/api-keys',
    '/v1/secrets',
    '/v1/settings/llm-providers',
    '/v1/tenants',
    '/v1/users',
    '/v1/usage',
    '/v1/nodes',
  ],
  ...[
    '/ui/api/v1/runs',
    '/ui/api/v1/api-keys',
    '/mcp',
    '/v1/audit-log',
    '/v1/webhooks',
    '/v1/connectors',
    '/v1/sessions',
  ],
]
const ROUTER_PATHS = [
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/models',
  '/v1/models/x',
  '/v1/files',
  '/-/traces',
  '/reload',
]
const PREFIXES = [
  '',
  '/',
  '//',
  '/.',
  '/./',
  '/..',
  '/%2e',
  '/%2e%2e',
  '/x/..',
  '/panel/..',
  '/healthz/..',
  '/readyz/../',
  '/metrics/..',
  '/\\',
  ';',
]
const HEADERS = [
  '',
  'x-original-url: /healthz',
  'x-rewrite-url: /healthz',
  'x-forwarded-for: 127.0.0.1',
  'x-http-method-override: GET',
  'authorization: Bearer',
  'authorization: Bearer null',
  'x-api-key: \x00',
  'x-router-key: ',
  'authorization: Basic YTpi',
]

const request = (method: string, path: string, header: string) =>
  `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${header === '' ? '' : `${header}\r\n`}content-length: 2\r\nconnection: close\r\n\r\n{}`

const shut = (got: string): string | undefined => {
  const [status = 0] = statuses(got)
  if (status === 204 && !got.includes('\r\n\r\n{')) return undefined
  return status >= 200 && status < 300 ? `opened with ${status}` : undefined
}

const runtimeDoors: Attempt[] = METHODS.flatMap(method =>
  RUNTIME_PATHS.map(path => ({
    name: `${method} ${path} without a key`,
    run: async ({ runtime }) => shut(await raw(runtime.origin, request(method, path, ''))),
  })),
)

const runtimeHeaders: Attempt[] = HEADERS.map(header => ({
  name: `GET /v1/runs with ${JSON.stringify(header)}`,
  run: async ({ runtime }) => shut(await raw(runtime.origin, request('GET', '/v1/runs', header))),
}))

const routerDoors: Attempt[] = PREFIXES.flatMap(prefix =>
  ROUTER_PATHS.flatMap(path =>
    ['POST', 'GET'].map(method => ({
      name: `${method} ${prefix}${path} without a key`,
      run: async ({ keyed, remote }) => {
        const before = remote.heard.length
        const opened = shut(await raw(keyed.origin, request(method, prefix + path, '')))
        return opened ?? (remote.heard.length > before ? 'something reached the upstream' : undefined)
      },
    })),
  ),
)

const pages: Attempt[] = [
  { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
  { origin: 'https://evil.example' },
  { 'sec-fetch-site': 'cross-site' },
  { host: 'evil.example' },
  { host: 'evil.example', origin: 'http://evil.example' },
  { origin: 'null' },
].map(headers => ({
  name: `a page sends ${JSON.stringify(headers)} to a router without keys`,
  run: async ({ open, remote }) => {
    const before = remote.heard.length
    const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
    const body = '{"model":"x","messages":[]}'
    const got = await raw(
      open.origin,
      `POST /v1/chat/completions HTTP/1.1\r\n${lines.join('')}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    )
    return shut(got) ?? (remote.heard.length > before ? 'something reached the upstream' : undefined)
  },
}))

const tenants: Attempt[] = [
  ['GET', '/v1/runs/:run'],
  ['GET', '/v1/runs/:run/journal'],
  ['GET', '/v1/runs/:run/receipt'],
  ['GET', '/v1/runs/:run/events'],
  ['GET', '/v1/runs/:run/steps'],
  ['POST', '/v1/runs/:run/cancel'],
  ['POST', '/v1/runs/:run/retry'],
  ['POST', '/v1/runs/:run/fork'],
  ['GET', '/v1/agents/diary'],
  ['DELETE', '/v1/agents/diary'],
  ['PUT', '/v1/agents/diary/budget'],
].map(([method = '', path = '']) => ({
  name: `${method} ${path} of another tenant`,
  run: async ({ victim, mallory }) => {
    await victim.call('POST', '/v1/agents', { name: 'diary', manifest: { model: 'demo/echo' } })
    const run = await victim.json<{ id: string }>('POST', '/v1/runs', { agentName: 'diary', input: { prompt: 'mine' } })
    const body = method === 'GET' || method === 'DELETE' ? undefined : {}
    return unless([403, 404, 400], await statusOf(mallory.call(method, path.replace(':run', run.id), body)))
  },
}))

const keys: Attempt[] = [
  {
    name: 'a key mints a scope that it does not have',
    run: async ({ mallory }) =>
      unless([403], await statusOf(mallory.call('POST', '/v1/api-keys', { name: 'more', scopes: ['admin'] }))),
  },
  {
    name: 'a key with keys:write revokes a stronger one',
    async run({ owner }) {
      const made = (scopes: string[]) =>
        owner.json<{ rawKey: string; key: { id: string } }>('POST', '/v1/api-keys', { name: 'k', scopes })
      const [strong, weak] = [await made(['admin']), await made(['keys:write'])]
      const headers = { authorization: `Bearer ${weak.rawKey}` }
      return unless([403], await statusOf(owner.call('DELETE', `/v1/api-keys/${strong.key.id}`, undefined, headers)))
    },
  },
  {
    name: 'a key with an end mints one without',
    async run({ owner }) {
      const expiresAt = new Date(Date.now() + 60_000).toISOString()
      const body = { name: 'short', scopes: ['keys:write', 'read'], expiresAt }
      const short = await owner.json<{ rawKey: string }>('POST', '/v1/api-keys', body)
      const headers = { authorization: `Bearer ${short.rawKey}` }
      const answer = await owner.call('POST', '/v1/api-keys', { name: 'long', scopes: ['read'] }, headers)
      if (!answer.ok) return undefined
      const { key } = (await answer.json()) as { key: { expiresAt?: string } }
      return key.expiresAt !== undefined && key.expiresAt <= expiresAt ? undefined : 'it outlasts what minted it'
    },
  },
]

const PLACES = [
  '127.0.0.2',
  '10.0.0.1',
  '192.168.0.1',
  '169.254.169.254',
  '[::1]',
  '[fd00::1]',
  '0.0.0.0',
  '0x7f000002',
  '2130706434',
  'localhost:1',
  '[::ffff:127.0.0.2]',
  '[64:ff9b::7f00:2]',
  '100.64.0.1',
]
const inner: Attempt[] = PLACES.map(place => ({
  name: `a webhook to ${place}`,
  run: async ({ mallory }) => {
    const answer = await mallory.call('POST', '/v1/webhooks', {
      url: `https://${place}/hook`,
      events: ['run.finished'],
    })
    const text = await answer.text()
    if (answer.ok) return `taken: ${text}`
    return undefined
  },
}))

export const doors: readonly Attack[] = [
  { name: 'doors of the runtime', attempts: [...runtimeDoors, ...runtimeHeaders] },
  { name: 'doors of the router', attempts: routerDoors },
  { name: 'pages of other sites', attempts: pages },
  { name: 'another tenant', attempts: tenants },
  { name: 'keys', attempts: keys },
  { name: 'inner addresses', attempts: inner },
]
