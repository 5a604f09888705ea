import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/time/clock.ts'
import type { ApiKeyCreated, LoggedIn } from '../../shared/wire/runtime/auth.ts'
import { errorBody } from '../../shared/wire/runtime/error.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { WebhookCreated } from '../../shared/wire/runtime/webhook.ts'
import { KEY } from './api.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

let on: ProviderFixture
let receipt: Receipt
let aheadMs = 0
beforeAll(async () => {
  on = await providerFixture({ clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs) } })
  await on.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: {} })
  await (await on.events(`/v1/runs/${id}/events`)).all()
  receipt = await on.json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
})
afterAll(() => on.close())

it('a reason with half of a surrogate pair cancels a run, which can be read afterwards', async () => {
  await on.json(201, 'POST', '/v1/agents', { name: 'waits', manifest: { model: 'demo/echo', tools: ['wait_signal'] } })
  const input = { prompt: '/call wait_signal {"name":"go"}' }
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'waits', input })
  await on.json(200, 'POST', `/v1/runs/${id}/cancel`, { reason: 'a\ud800b' })
  await (await on.events(`/v1/runs/${id}/events`)).all()
  expect(await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ cancelReason: 'a\ufffdb' })
})

it('answers 404 for an id or a name in a path that nothing can have, and 400 for a parameter that is given twice', async () => {
  for (const [method, path] of [
    ['GET', `/v1/runs/${'x'.repeat(600)}`],
    ['GET', '/v1/agents/a%20b%2F'],
    ['DELETE', '/v1/secrets/a%20b'],
    ['GET', `/v1/schedules/${'%C3%A9'.repeat(300)}`],
  ] as const) {
    expect(await refused(method, path), path).toMatchObject({ status: 404, code: 'not_found' })
  }
  expect(await refused('GET', '/v1/agents?limit=1&limit=2')).toMatchObject({
    status: 400,
    code: 'validation_failed',
    error: 'limit: expected once, and it is given more than once',
  })
})

/** Every refusal has this shape, whatever was wrong. */
async function refused(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await on.call(method, path, body, headers)
  const said = errorBody.parse(await answer.json())
  expect(said.error.length).toBeGreaterThan(10)
  return { status: answer.status, ...said }
}

const schedule = (more: object) => ({ agentName: 'echo', cronExpr: '0 0 * * *', ...more })
const wrong: [string, string, string, unknown, string][] = [
  ['a negative budget', 'PUT', '/v1/agents/echo/budget', { maxCostUsdPerDay: -0.01 }, 'maxCostUsdPerDay'],
  ['a budget of half a run', 'PUT', '/v1/agents/echo/budget', { maxRunsPerDay: 0.5 }, 'maxRunsPerDay'],
  ['a limit that there is not', 'PUT', '/v1/agents/echo/budget', { maxCost: 1 }, 'maxCost'],
  ['a cron expression that is none', 'POST', '/v1/schedules', schedule({ cronExpr: 'every day' }), 'cronExpr'],
  ['one of seven fields', 'POST', '/v1/schedules', schedule({ cronExpr: '0 0 0 1 1 * 2027' }), 'cronExpr'],
  ['a day that never comes', 'POST', '/v1/schedules', schedule({ cronExpr: '0 0 31 2 *' }), 'cronExpr'],
  ['a zone that is nowhere', 'POST', '/v1/schedules', schedule({ timezone: 'Europe/Atlantis' }), 'timezone'],
  ['a webhook to nowhere', 'POST', '/v1/webhooks', { url: 'ftp://x/' }, 'url'],
  ['a scope that is none', 'POST', '/v1/api-keys', { name: 'x', scopes: ['runs:everything'] }, 'scopes.0'],
  ['an expiry that is no time', 'POST', '/v1/api-keys', { name: 'x', expiresAt: 'soon' }, 'expiresAt'],
  ['a message without words', 'POST', '/v1/sessions', { agentName: '' }, 'agentName'],
]

describe('what is wrong is said, and where', () => {
  it.each(wrong)('%s', async (_, method, path, body, where) => {
    const said = await refused(method, path, body)
    expect([said.status, said.code]).toEqual([400, 'validation_failed'])
    expect(said.details?.map(detail => detail.path)).toContain(where)
  })

  it('a key that has expired, however good it was', async () => {
    const expiresAt = new Date(Date.now() + aheadMs + 1000).toISOString()
    const { rawKey } = await on.json<ApiKeyCreated>(201, 'POST', '/v1/api-keys', { name: 'short', expiresAt })
    const headers = { authorization: `Bearer ${rawKey}` }
    expect((await on.call('GET', '/v1/agents', undefined, headers)).status).toBe(200)
    aheadMs += 1000
    expect(await refused('GET', '/v1/agents', undefined, headers)).toMatchObject({ status: 401, code: 'unauthorized' })
  })

  it('a receipt of which something is missing', async () => {
    const { signature, ...rest } = receipt
    const { tokensIn: _, ...payload } = receipt.payload
    const text = JSON.stringify(receipt)
    for (const [body, status] of [
      [rest, 400],
      [{ ...receipt, algorithm: 'RS256' }, 400],
      [{}, 400],
    ] as const) {
      expect((await refused('POST', '/v1/runs/receipts/verify', body)).status, JSON.stringify(body)).toBe(status)
    }
    // What has the shape of a receipt is judged, and found to be none.
    for (const body of [
      { ...receipt, payload },
      { ...receipt, signature: '' },
      { ...receipt, signature: signature.slice(4) },
    ]) {
      const found = await on.json<{ valid: boolean; reason: string }>(200, 'POST', '/v1/runs/receipts/verify', body)
      expect(found).toMatchObject({ valid: false, reason: 'signature_invalid' })
    }
    const cut = new Request('http://local/v1/runs/receipts/verify', {
      method: 'POST',
      body: text.slice(0, text.length / 2),
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    const answer = await on.runtime.fetch(cut)
    expect([answer.status, errorBody.parse(await answer.json()).code]).toEqual([400, 'bad_json'])
  })

  it('a second set-up, and the cookie of somebody who is not logged in here', async () => {
    const token = await on.runtime.setupToken()
    const owner = { email: 'a@example.org', password: 'correct horse battery', name: 'A' }
    await on.json(201, 'POST', '/auth/setup', { token, ...owner })
    expect(await refused('POST', '/auth/setup', { token, ...owner })).toMatchObject({ status: 409, code: 'setup_done' })
    const login = await on.call('POST', '/auth/login', { email: owner.email, password: owner.password })
    const { csrfToken } = (await login.json()) as LoggedIn
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    const panel = (headers: Record<string, string>) => on.call('GET', '/ui/api/v1/agents', undefined, headers)
    expect((await panel({ cookie })).status).toBe(200)
    for (const foreign of [
      `wb_session=${'x'.repeat(43)}`,
      `${cookie.slice(0, -1)}_`,
      `other=${cookie.split('=')[1]}`,
    ]) {
      const said = await refused('GET', '/ui/api/v1/agents', undefined, { cookie: foreign, 'x-csrf-token': csrfToken })
      expect([said.status, said.code]).toEqual([401, 'unauthorized'])
    }
    const forged = await refused('POST', '/ui/api/v1/agents', { name: 'x' }, { cookie, 'x-csrf-token': 'guessed' })
    expect([forged.status, forged.code]).toEqual([403, 'csrf'])
    // A cookie is no key.
    expect((await refused('GET', '/v1/agents', undefined, { authorization: '', cookie })).status).toBe(401)
  })

  it('a webhook’s secret is told once: a repeat of the call that made it does not tell it again', async () => {
    const body = { url: `${on.remote.origin}/hook` }
    const key = { 'idempotency-key': 'hook-1' }
    const first = (await (await on.call('POST', '/v1/webhooks', body, key)).json()) as WebhookCreated
    const again = await on.call('POST', '/v1/webhooks', body, key)
    const repeated = (await again.json()) as WebhookCreated
    expect([again.headers.get('idempotency-replayed'), repeated.id, repeated.secret]).toEqual(['true', first.id, '***'])
    expect(await refused('POST', '/v1/webhooks', { ...body, secret: first.secret })).toMatchObject({ status: 400 })
    expect(JSON.stringify(await on.json(200, 'GET', '/v1/webhooks'))).not.toContain(first.secret)
  })
})
