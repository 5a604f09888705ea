import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import type { AgentVersion } from '../../shared/wire/runtime/agent.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { allows, resourceScopes, type Scope, scopes } from '../../shared/wire/runtime/scopes.ts'
import { type Fixture, fixture, type Sent } from './testing/fixture.ts'

const mounted = runtimeEndpoints.filter(({ path }) => path.startsWith('/v1/'))
const unknownId = uuidv7()

/** The path with a name or id that does not exist. */
const pathOf = ({ path }: Endpoint) => path.replaceAll(/\{\w+\}/g, unknownId)

/** Every scope of one resource that does not open the operation. */
const closing = (endpoint: Endpoint): Scope[] => resourceScopes.filter(scope => !allows([scope], endpoint.scopes ?? []))

let here: Fixture
let keys: Record<'unknown' | 'expired' | 'revoked' | 'malformed' | 'everything', string>

beforeAll(async () => {
  here = await fixture()
  const expired = await here.newKey({ expiresAt: '2026-01-02T03:04:06.000Z' })
  const revoked = await here.newKey()
  expect((await here.call('DELETE', `/v1/api-keys/${revoked.key.id}`)).status).toBe(204)
  here.clock.advance(1000)
  keys = {
    malformed: 'wb_live_short',
    unknown: `wb_live_${'u'.repeat(43)}`,
    expired: expired.rawKey,
    revoked: revoked.rawKey,
    everything: (await here.newKey({ scopes: ['admin', 'platform:admin'] })).rawKey,
  }
})
afterAll(() => here.close())

it('has something to try', () => {
  expect(mounted.length).toBeGreaterThan(15)
})

describe.each(mounted.map(endpoint => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
  '%s',
  (_, endpoint) => {
    const { method } = endpoint
    const path = pathOf(endpoint)

    it('is 401 without a valid key, whatever else is wrong', async () => {
      const bad: Sent[] = [
        { key: '' },
        { key: '', headers: { authorization: 'Bearer' } },
        { key: '', headers: { authorization: `Basic ${keys.everything}` } },
        { key: '', headers: { authorization: `Bearer ${keys.everything} x` } },
        { key: '', headers: { cookie: `wb_session=${keys.everything}`, 'x-api-key': keys.everything } },
        { key: keys.malformed },
        { key: keys.unknown },
        { key: keys.expired },
        { key: keys.revoked },
        { key: keys.everything.slice(0, -1) },
      ]
      for (const sent of bad) {
        const { status, headers, body } = await here.call(method, `${path}?token=${keys.everything}`, sent)
        expect([status, body.code, headers.get('www-authenticate')], JSON.stringify(sent)).toEqual([
          401,
          'unauthorized',
          'Bearer',
        ])
      }
    })

    it('is 403 and names the scope for a key that holds every other one', async () => {
      const { rawKey } = await here.newKey({ scopes: closing(endpoint) })
      // A body that is no JSON: the scope is looked at first.
      const sent = method === 'GET' ? { key: rawKey } : { key: rawKey, body: '{' }
      const { status, body } = await here.call(method, path, sent)
      expect([status, body]).toEqual([
        403,
        { error: `this needs the scope ${endpoint.scopes!.join(' or ')}`, code: 'forbidden_scope' },
      ])
    })

    it('lets each scope pass that opens it', async () => {
      for (const scope of scopes.filter(one => allows([one], endpoint.scopes ?? []))) {
        const { rawKey } = await here.newKey({ scopes: [scope] })
        const sent = method === 'GET' || method === 'DELETE' ? { key: rawKey } : { key: rawKey, body: '{' }
        const { status } = await here.call(method, path, sent)
        expect([200, 400, 404], `${scope}: ${status}`).toContain(status)
      }
    })
  },
)

it('is 401 before it is 404, and 404 names what was asked for', async () => {
  for (const path of ['/v1', '/v1/', '/v1/nothing', '/v1/agents/', '/%76%31/nothing']) {
    expect((await here.call('GET', path, { key: '' })).status, path).toBe(401)
  }
  expect(await here.call('PATCH', '/v1/api-keys')).toMatchObject({
    status: 404,
    body: { error: 'route not found: PATCH /v1/api-keys', code: 'not_found' },
  })
})

describe('another tenant', async () => {
  it('sees none of it: an id is 403 without a word, a name is 404, a list is empty', async () => {
    const other = await here.newKey({}, await here.newTenant())
    const { key } = await here.newKey()
    await here.call('POST', '/v1/agents', { body: { name: 'mine' } })
    const {
      body: [version],
    } = await here.call<AgentVersion[]>('GET', '/v1/agents/mine/versions')

    expect(await here.call('DELETE', `/v1/api-keys/${key.id}`, { key: other.rawKey })).toMatchObject({
      status: 403,
      body: { error: 'this belongs to another tenant', code: 'forbidden_tenant' },
    })
    expect((await here.call('DELETE', `/v1/api-keys/${unknownId}`, { key: other.rawKey })).status).toBe(404)
    for (const endpoint of mounted.filter(({ path }) => path.startsWith('/v1/agents/{name}'))) {
      const path = endpoint.path.replace('{name}', 'mine').replace('{versionId}', version!.id)
      const body = ['POST', 'PATCH', 'PUT'].includes(endpoint.method) ? { body: bodyFor(endpoint) } : {}
      const { status } = await here.call(endpoint.method, path, { key: other.rawKey, ...body })
      expect(status, endpoint.id).toBe(404)
    }
    await here.call('POST', '/v1/agents', { key: other.rawKey, body: { name: 'theirs' } })
    const foreign = await here.call('GET', `/v1/agents/theirs/versions/${version!.id}`, { key: other.rawKey })
    expect([foreign.status, foreign.body.code]).toEqual([403, 'forbidden_tenant'])
    for (const path of ['/v1/agents', '/v1/api-keys']) {
      const { body } = await here.call<{ name: string }[]>('GET', path, { key: other.rawKey })
      expect(body.map(row => row.name)).toEqual([path === '/v1/agents' ? 'theirs' : 'k'])
    }
  })

  it('cannot be reached by a key without platform:admin', async () => {
    const { rawKey } = await here.newKey()
    const tenantId = await here.newTenant()
    const sent = { key: rawKey, body: { name: 'x' } }
    expect((await here.call('POST', `/v1/tenants/${tenantId}/api-keys`, sent)).body.code).toBe('forbidden_scope')
    expect((await here.call('GET', '/v1/tenants', { key: rawKey })).body.code).toBe('forbidden_scope')
  })
})

function bodyFor({ id }: Endpoint): object {
  return id === 'publishAgentVersion' ? { manifest: {} } : {}
}
