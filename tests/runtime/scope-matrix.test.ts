import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readOAuthClients } from '../../runtime/connectors/oauth/clients.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import type { ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { allows, resourceScopes, type Scope, scopes } from '../../shared/wire/runtime/scopes.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'
import { type RightCall, rightCalls } from './right-calls.ts'

const CALLERS = ['no key', 'bad key', 'expired', 'revoked', 'missing scope', 'foreign tenant', 'right'] as const
type Caller = (typeof CALLERS)[number]

interface Told {
  status: number
  code?: string
}

const cells: { endpoint: string; caller: Caller; wanted: string; got: string }[] = []
let fixture: ProviderFixture
let folder: string
let callOf: (endpoint: Endpoint) => Promise<RightCall>
let keys: { expired: string; revoked: string; foreign: string; other: string }
let aheadMs = 0

const mint = async (scopes: readonly Scope[], more: object = {}, tenantId = 'default'): Promise<ApiKeyCreated> =>
  fixture.json(201, 'POST', `/v1/tenants/${tenantId}/api-keys`, { name: 'k', scopes, ...more })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-matrix-'))
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) }
  fixture = await providerFixture({
    url: join(folder, 'runtime.db'),
    clock,
    oauthClients: readOAuthClients({
      PLATFORM_OAUTH_GITHUB_CLIENT_ID: 'id',
      PLATFORM_OAUTH_GITHUB_CLIENT_SECRET: 'secret',
    }),
  })
  callOf = await rightCalls(fixture)
  const other = (await fixture.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })).id
  const revoked = await mint([])
  const expired = await mint([], { expiresAt: new Date(Date.now() + 60_000).toISOString() })
  // Both were good once, and known as good.
  for (const { rawKey } of [revoked, expired])
    expect((await ask('GET', { path: '/v1/agents' }, rawKey)).status).toBe(200)
  await fixture.json(204, 'DELETE', `/v1/api-keys/${revoked.key.id}`)
  aheadMs = 120_000
  keys = {
    expired: expired.rawKey,
    revoked: revoked.rawKey,
    other,
    foreign: (await mint([], {}, other)).rawKey,
  }
})
afterAll(async () => {
  await fixture.close()
  await rm(folder, { recursive: true, force: true })
})

async function ask(method: string, { path, body }: RightCall, key: string | undefined) {
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
  if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
  const request = new Request(`http://local${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = await fixture.runtime.fetch(request)
  const text = await answer.text()
  let code: unknown
  if (answer.status >= 400) code = (JSON.parse(text) as { code?: unknown }).code
  return { status: answer.status, ...(typeof code === 'string' && { code }), text }
}

/** What docs/spec/runtime.md §13 says a caller gets: ids of others are 403, names of others are 404, lists hold one's own. */
function wanted(endpoint: Endpoint, caller: Caller, { foreign }: RightCall): Told {
  const success = { status: Number(Object.keys(endpoint.responses)[0]) }
  switch (caller) {
    case 'no key':
    case 'bad key':
    case 'expired':
    case 'revoked':
      return { status: 401, code: 'unauthorized' }
    case 'missing scope':
      // It asks for none of its own: each thing that it does asks for what that needs.
      if (endpoint.scopes === undefined) return success
      return { status: 403, code: 'forbidden_scope' }
    case 'right':
      return success
    case 'foreign tenant':
      if (ofPlatform(endpoint)) return { status: 403, code: 'forbidden_scope' }
      if (foreign === 404) return { status: 404, code: 'not_found' }
      if (foreign === 'its own' || !endpoint.path.includes('{')) return success
      return /\{(?:name|provider)\}|\/connectors\//.test(endpoint.path) && !endpoint.path.startsWith('/v1/runs/')
        ? { status: 404, code: 'not_found' }
        : { status: 403, code: 'forbidden_tenant' }
  }
}

const ofPlatform = ({ scopes = [] }: Endpoint) => scopes.includes('platform:admin')

async function keyFor(endpoint: Endpoint, caller: Caller): Promise<string | undefined> {
  const needed = endpoint.scopes ?? []
  switch (caller) {
    case 'no key':
      return undefined
    case 'bad key':
      return `wb_live_${'b'.repeat(43)}`
    case 'expired':
    case 'revoked':
      return keys[caller]
    case 'missing scope': {
      const closed = ofPlatform(endpoint) ? (['admin'] as const) : resourceScopes.filter(one => !allows([one], needed))
      return (await mint(closed)).rawKey
    }
    case 'foreign tenant':
      return keys.foreign
    case 'right':
      // A key mints only what it holds, so to make keys elsewhere the scope alone is not enough.
      return (await mint(ofPlatform(endpoint) ? ['admin', 'platform:admin'] : [(needed[0] ?? 'runs:read') as Scope]))
        .rawKey
  }
}

/** The same call about something of their own. */
function theirs({ path, body }: RightCall): RightCall {
  const named = (text: string) => text.replaceAll('mine-', 'theirs-')
  return { path: named(path), ...(body !== undefined && { body: JSON.parse(named(JSON.stringify(body))) as unknown }) }
}

const guarded = runtimeEndpoints.filter(({ auth }) => auth === 'bearer')

it.each(guarded.map(endpoint => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
  '%s answers each caller as the contract says',
  async (name, endpoint) => {
    for (const scope of endpoint.scopes ?? []) expect(scopes as readonly string[]).toContain(scope)
    const call = await callOf(endpoint)
    // The right call comes last, on the same object: so the calls that were refused before have changed nothing.
    for (const caller of CALLERS) {
      const expected = wanted(endpoint, caller, call)
      const foreigner = caller === 'foreign tenant'
      const { text, ...told } = await ask(
        endpoint.method,
        foreigner && expected.status < 300 ? theirs(call) : call,
        await keyFor(endpoint, caller),
      )
      cells.push({ endpoint: name, caller, wanted: JSON.stringify(expected), got: JSON.stringify(told) })
      // The log of what they tried names what they asked for, and nothing else.
      if (foreigner && told.status < 300 && endpoint.id !== 'listAuditLog') expect(text).not.toMatch(/mine-/)
      expect(told, `${caller}: ${text}`).toEqual(expected)
    }
  },
)

it('leaves what needs no key open, and refuses a bad one where a good one would count', async () => {
  for (const endpoint of runtimeEndpoints.filter(
    ({ auth }) => auth === 'none' || auth === 'cookie' || auth === 'metrics',
  )) {
    const call = { path: endpoint.path, ...(endpoint.method !== 'GET' && { body: {} }) }
    for (const caller of ['no key', 'bad key'] as const) {
      const told = await ask(endpoint.method, call, await keyFor(endpoint, caller)).catch(() => ({ status: 0 }))
      const closed = endpoint.auth === 'cookie'
      cells.push({
        endpoint: `${endpoint.method} ${endpoint.path}`,
        caller,
        wanted: closed ? '401' : 'not 403',
        got: String(told.status),
      })
      if (closed) expect(told.status, endpoint.path).toBe(401)
      else expect([200, 400, 503], `${endpoint.path} ${told.status}`).toContain(told.status)
    }
  }
})

it('has tried every operation with every caller', () => {
  for (const caller of CALLERS) {
    const tried = new Set(cells.filter(cell => cell.caller === caller).map(cell => cell.endpoint))
    for (const { method, path } of guarded) expect(tried, caller).toContain(`${method} ${path}`)
  }
  const right = cells.filter(({ wanted, got }) => wanted === got || /^(?:401|not 403)$/.test(wanted)).length
  console.log(
    `scope matrix: ${guarded.length} operations with a key × ${CALLERS.length} callers, ${cells.length} cells, ${right} as specified`,
  )
  expect(right).toBe(cells.length)
})

it('has let nobody near the other tenant’s side of it either', async () => {
  const names = await ask('GET', { path: '/v1/agents' }, keys.foreign)
  expect(names.text).not.toContain('mine-agent')
  const { rows } = await fixture.db.execute({
    sql: 'select count(*) as n from runs where tenant_id = ?',
    args: [keys.other],
  })
  expect(Number(rows[0]?.n)).toBe(0)
})
