import { describe, expect, it } from 'vitest'
import type { AuditEntry, AuditVerified } from '../../shared/wire/runtime/audit.ts'
import type { ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import { fixture } from '../auth/testing/fixture.ts'
import { isAdministrative } from './audited.ts'

const options = { timers: false, masterKey: new Uint8Array(32).fill(7) }

async function entries({ call }: Awaited<ReturnType<typeof fixture>>, key?: string): Promise<AuditEntry[]> {
  return (await call<AuditEntry[]>('GET', '/v1/audit-log', key === undefined ? {} : { key })).body
}

describe('the audit log over HTTP', () => {
  it('names who did what to what, and none of the values', async () => {
    const made = await fixture(options)
    const { call } = made
    const { body: key } = await call<ApiKeyCreated>('POST', '/v1/api-keys', { body: { name: 'ci' } })
    await call('POST', '/v1/agents', { key: key.rawKey, body: { name: 'clerk' } })
    await call('POST', '/v1/agents/clerk/versions', { body: { manifest: { systemPrompt: 'CANARY' } } })
    const { body: schedule } = await call<Schedule>('POST', '/v1/schedules', {
      body: { agentName: 'clerk', cronExpr: '@daily' },
    })
    await call('PUT', `/v1/schedules/${schedule.id}`, { body: { cronExpr: '@hourly', enabled: false } })
    await call('PUT', '/v1/secrets/token', { body: { value: 'CANARY-SECRET' } })
    await call('POST', '/v1/settings/llm-providers', { body: { provider: 'openai', apiKey: 'sk-CANARY' } })
    await call('POST', '/v1/webhooks', { body: { url: 'https://example.com/hook' } })
    await call('DELETE', `/v1/api-keys/${key.key.id}`)
    const list = (await entries(made)).toReversed()
    expect(list.map(({ seq, action, target, outcome }) => [seq, action, target, outcome])).toEqual([
      [1, 'createApiKey', '/v1/api-keys', 'done'],
      [2, 'createAgent', '/v1/agents', 'done'],
      [3, 'publishAgentVersion', '/v1/agents/clerk/versions', 'done'],
      [4, 'createSchedule', '/v1/schedules', 'done'],
      [5, 'updateSchedule', `/v1/schedules/${schedule.id}`, 'done'],
      [6, 'saveSecret', '/v1/secrets/token', 'done'],
      [7, 'saveProvider', '/v1/settings/llm-providers', 'done'],
      [8, 'createWebhook', '/v1/webhooks', 'done'],
      [9, 'revokeApiKey', `/v1/api-keys/${key.key.id}`, 'done'],
    ])
    expect(list[1]).toMatchObject({ actor: key.key.id, via: 'api', requestId: expect.any(String) })
    expect(list[3]!.object).toBe(schedule.id)
    expect(list[4]!.fields).toEqual(['cronExpr', 'enabled'])
    expect(JSON.stringify(list)).not.toContain('CANARY')
    expect((await call<AuditVerified>('GET', '/v1/audit-log/verify')).body).toMatchObject({ valid: true, entries: 9 })
    await made.close()
  })

  it('does not hold what was refused, what was only read, and what an earlier call had done', async () => {
    const made = await fixture(options)
    const { call } = made
    await call('GET', '/v1/agents')
    await call('POST', '/v1/agents', { body: { name: 'no good name' } })
    await call('DELETE', '/v1/agents/nobody')
    await call('POST', '/v1/runs', { body: { agentName: 'nobody' } })
    await call('POST', '/v1/agents', { body: {}, key: 'wb_live_short' })
    expect(await entries(made)).toEqual([])
    const headers = { 'idempotency-key': 'one' }
    for (let times = 0; times < 2; times++) await call('POST', '/v1/agents', { headers, body: { name: 'clerk' } })
    expect((await entries(made)).map(({ action }) => action)).toEqual(['createAgent'])
    const { rows } = await made.db.execute('select count(*) as left from audit_intents')
    expect(Number(rows[0]!.left)).toBe(0)
    await made.close()
  })

  it('begins with the first owner, and knows the dashboard from a program', async () => {
    const made = await fixture({ ...options, bootstrapKey: undefined })
    const token = await made.runtime.setupToken()
    const owner = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada' }
    const setUp = await made.call<{ rawKey: string }>('POST', '/auth/setup', { key: '', body: { token, ...owner } })
    expect(setUp.status).toBe(201)
    const { body: login, headers } = await made.call<{ user: { id: string }; csrfToken: string }>(
      'POST',
      '/auth/login',
      {
        key: '',
        body: { email: owner.email, password: owner.password },
      },
    )
    const cookie = headers.get('set-cookie')!.split(';')[0]!
    await made.call('POST', '/ui/api/v1/agents', {
      key: '',
      headers: { cookie, 'x-csrf-token': login.csrfToken },
      body: { name: 'clerk' },
    })
    const list = await entries(made, setUp.body.rawKey)
    expect(list).toMatchObject([
      { action: 'createAgent', target: '/v1/agents', via: 'dashboard', actor: login.user.id },
      { action: 'setup', via: 'setup', actor: 'setup link' },
    ])
    await made.close()
  })

  it('is of one tenant; what the platform does to another stands in both', async () => {
    const made = await fixture(options)
    const tenant = await made.newTenant()
    const { rawKey: key, key: own } = await made.newKey({}, tenant)
    await made.call('POST', '/v1/agents', { key, body: { name: 'clerk' } })
    expect((await entries(made, key)).map(({ action, object }) => [action, object])).toEqual([
      ['createAgent', expect.any(String)],
      ['createTenantApiKey', own.id],
    ])
    expect((await entries(made)).map(({ action }) => action)).toEqual(['createTenantApiKey', 'createTenant'])
    const { rawKey: narrow } = await made.newKey({ scopes: ['agents:write'] })
    expect((await made.call('GET', '/v1/audit-log', { key: narrow })).status).toBe(403)
    await made.close()
  })

  it('comes in pages, and is checked against a place that was noted', async () => {
    const made = await fixture(options)
    for (const name of ['a', 'b', 'c']) await made.call('PUT', `/v1/secrets/${name}`, { body: { value: name } })
    const first = await made.call<AuditEntry[]>('GET', '/v1/audit-log?limit=2')
    expect(first.body.map(entry => entry.target)).toEqual(['/v1/secrets/c', '/v1/secrets/b'])
    const next = /<([^>]+)>/.exec(first.headers.get('link')!)![1]!
    expect((await made.call<AuditEntry[]>('GET', next)).body.map(entry => entry.target)).toEqual(['/v1/secrets/a'])
    const { hash } = first.body[1]!
    const verify = async (query: string) => (await made.call<AuditVerified>('GET', `/v1/audit-log/verify${query}`)).body
    expect(await verify(`?seq=2&hash=${hash}`)).toMatchObject({ valid: true })
    expect(await verify(`?seq=1&hash=${hash}`)).toMatchObject({ valid: false, brokenAt: 1, reason: 'noted' })
    expect((await made.call('GET', '/v1/audit-log/verify?seq=0')).status).toBe(400)
    await made.db.execute("update audit_log set body = replace(body, 'secrets/b', 'secrets/x') where seq = 2")
    expect(await verify('')).toMatchObject({ valid: false, brokenAt: 2, reason: 'hash' })
    await made.close()
  })
})

it('covers every operation that changes how a tenant is set up', () => {
  const acts = runtimeEndpoints.filter(isAdministrative).map(({ id }) => id)
  expect(acts).toEqual(
    expect.arrayContaining([
      ...[
        'createApiKey',
        'revokeApiKey',
        'createTenant',
        'deleteTenant',
        'createAgent',
        'publishAgentVersion',
        'promoteAgentVersion',
      ],
      ...['createSchedule', 'deleteSchedule', 'pauseSchedule', 'createWebhook', 'redeliverWebhook', 'saveSecret'],
      ...['saveProvider', 'deleteProvider', 'createNode'],
    ]),
  )
  expect(acts.filter(id => /Run|Session|Receipt|Approval/.test(id) && !/runSchedule/.test(id))).toEqual([])
})
