import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../shared/log/log.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { answerErrors } from '../errors.ts'
import type { Access, Caller, RouterHttpEnv } from './access.ts'
import { guard } from './guard.ts'
import { parseKeys } from './keys.ts'

const ACME = 'acme-secret-of-24-characters'
const OPS = 'ops-secret-of-24-characters-'
const keys = parseKeys(`acme:${ACME},ops!:${OPS}`, sha256)

/** What the guard says to a request: a status, and who the caller is. */
async function ask(access: Partial<Access>, path: string, headers: Record<string, string> = {}) {
  const app = new Hono<RouterHttpEnv>()
  app.use(
    guard({
      access: { keys: [], reach: 'network', insecure: false, metricsOpen: false, ...access },
      tenantId: 'home',
      sha256,
    }),
  )
  app.all('*', c => c.json(c.get('caller')))
  app.onError(answerErrors(silentLog(), true))
  const answer = await app.request(`http://127.0.0.1:8080${path}`, { headers })
  const body = (await answer.json()) as Caller & { error?: { type: string; message: string; code?: string } }
  return { status: answer.status, body }
}

const PROVIDER = ['/v1/messages', '/v1/messages/batches/x', '/v1/chat/completions', '/v1/models/m', '/v1/files']
const OPEN = ['/healthz', '/readyz', '/panel', '/panel/panel.js', '/openapi.json', '/.well-known/router-receipts']
const AUDIT = [
  '/-/traces',
  '/-/traces/x',
  '/-/traces/x/explain',
  '/-/savings',
  '/-/evals',
  '/-/checkpoints',
  '/-/feedback/records',
  '/-/reload',
]

describe('on a network without keys', () => {
  it('serves the provider paths, feedback, capabilities and health', async () => {
    for (const path of [...PROVIDER, ...OPEN, '/v1/feedback', '/v1/capabilities', '/nowhere']) {
      expect(await ask({}, path), path).toMatchObject({ status: 200, body: { tenantId: 'home', sees: 'home' } })
    }
  })

  it('closes the audit and names what opens it', async () => {
    for (const path of AUDIT) {
      const { status, body } = await ask({}, path)
      expect(status, path).toBe(401)
      expect(body.error?.message).toMatch(/ROUTER_KEYS.*ROUTER_INSECURE=1/)
      expect((await ask({ insecure: true }, path)).status, path).toBe(200)
    }
  })

  it('closes the metrics and names what opens them', async () => {
    const { status, body } = await ask({}, '/metrics')
    expect([status, body.error?.message]).toEqual([401, expect.stringMatching(/ROUTER_KEYS.*ROUTER_METRICS_OPEN=1/)])
    for (const access of [{ metricsOpen: true }, { insecure: true }, { reach: 'loopback' }] as const) {
      expect((await ask(access, '/metrics')).status).toBe(200)
    }
  })

  it('is not fooled by another spelling of a path', async () => {
    for (const path of ['/-/%74races', '/%6detrics', '/-/traces/%2e%2e%2f', '/%2d/reload']) {
      expect((await ask({}, path)).status, path).toBe(401)
    }
  })
})

describe('with keys', () => {
  it('asks for one on every path but the open ones', async () => {
    for (const reach of ['network', 'loopback', 'program'] as const) {
      for (const path of [...PROVIDER, ...AUDIT, '/v1/feedback', '/v1/capabilities', '/metrics', '/nowhere']) {
        expect((await ask({ keys, reach }, path)).status, path).toBe(401)
        expect((await ask({ keys, reach }, path, { 'x-router-key': 'another-secret-of-24-characters' })).status).toBe(
          401,
        )
        expect((await ask({ keys, reach }, path, { 'x-router-key': OPS })).status, path).toBe(200)
      }
      for (const path of OPEN) expect((await ask({ keys, reach }, path)).status, path).toBe(200)
    }
    expect((await ask({ keys, metricsOpen: true }, '/metrics')).status).toBe(200)
    // They name what each tenant spends.
    const metrics = async (key: string, known = keys) =>
      (await ask({ keys: known }, '/metrics', { 'x-router-key': key })).status
    expect([await metrics(ACME), await metrics(OPS)]).toEqual([403, 200])
    // As Prometheus sends it; elsewhere a bearer token is the provider's.
    const bearer = { authorization: `Bearer ${OPS}` }
    expect((await ask({ keys }, '/metrics', bearer)).status).toBe(200)
    for (const path of ['/-/traces', '/-/reload', '/v1/messages']) {
      expect((await ask({ keys }, path, bearer)).status, path).toBe(401)
    }
    expect(await metrics(ACME, parseKeys(`acme:${ACME}`, sha256))).toBe(200)
  })

  it('never reads the headers that belong to the provider', async () => {
    expect((await ask({ keys }, '/v1/messages', { authorization: `Bearer ${ACME}`, 'x-api-key': ACME })).status).toBe(
      401,
    )
  })

  it('answers a missing key in the shape of the dialect', async () => {
    const { body: messages } = await ask({ keys }, '/v1/messages')
    expect(messages).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
    const { body: chat } = await ask({ keys }, '/v1/chat/completions')
    expect(chat).toMatchObject({ error: { type: 'authentication_error', code: 'router_key' } })
    const { body: audit } = await ask({ keys }, '/-/traces')
    expect(audit.error?.type).toBe('unauthorized')
  })

  it('takes the tenant of the key, and shows other tenants and the reload to admins only', async () => {
    const header = { 'x-router-key': ACME }
    expect((await ask({ keys }, '/-/traces', header)).body).toEqual({ tenantId: 'acme', sees: 'acme', admin: false })
    expect(await ask({ keys }, '/-/reload', header)).toMatchObject({
      status: 403,
      body: { error: { type: 'forbidden' } },
    })
    expect(await ask({ keys }, '/-/reload', { 'x-router-key': OPS })).toEqual({
      status: 200,
      body: { tenantId: 'ops', admin: true },
    })
  })
})

describe('on loopback', () => {
  const reach = 'loopback'
  it('answers programs and its own page', async () => {
    const own: Record<string, string>[] = [
      {},
      { origin: 'http://127.0.0.1:8080' },
      { host: 'LOCALHOST:8080', origin: 'http://localhost:8080' },
    ]
    for (const headers of own) {
      const host = { host: '127.0.0.1:8080', ...headers }
      expect((await ask({ reach }, '/-/traces', host)).status, JSON.stringify(host)).toBe(200)
    }
    expect((await ask({ reach }, '/-/traces', { host: '[::1]:8080' })).status).toBe(200)
  })

  it.each<Record<string, string>>([
    { host: 'evil.example' },
    { host: 'evil.example:8080', origin: 'http://evil.example:8080' },
    { host: '127.0.0.1:8080', origin: 'http://evil.example' },
    { host: '127.0.0.1:8080', origin: 'null' },
    { host: '127.0.0.1.evil.example:8080' },
    { host: '' },
  ])('refuses a page that aims at this machine: %j', async headers => {
    for (const path of ['/-/traces', '/metrics', '/healthz', '/-/reload', ...PROVIDER]) {
      expect((await ask({ reach }, path, headers)).status, path).toBe(403)
    }
  })
})
