import { expect, it } from 'vitest'
import { agentCreated } from '../../shared/wire/runtime/agent.ts'
import { type ApiKeyCreated, apiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import { hostNames, matrix, RUNTIME_KEY } from '../matrix.ts'
import { slice } from '../slice.ts'

/** A password takes long to derive: a short run comes to the limit on one host, and tries one password on the others. */
const limitHosts = slice('hosts of the login limit', hostNames, 1)

matrix('runtime', (call, _, host) => {
  const send = (method: string, path: string, body?: unknown, key = RUNTIME_KEY, more: Record<string, string> = {}) =>
    call(path, {
      method,
      headers: {
        ...(key !== '' && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...more,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  it('asks for a key on every path under /v1', async () => {
    for (const key of ['', 'wb_live_short', `wb_live_${'x'.repeat(43)}`]) {
      const answer = await send('GET', '/v1/agents', undefined, key)
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
  })

  it('mints a key that works, does less, and stops at once', async () => {
    const made: ApiKeyCreated = apiKeyCreated.parse(
      await (await send('POST', '/v1/api-keys', { name: 'reader', scopes: ['agents:read'] })).json(),
    )
    expect((await send('GET', '/v1/agents', undefined, made.rawKey)).status).toBe(200)
    const refused = await send('POST', '/v1/agents', { name: 'x' }, made.rawKey)
    expect([refused.status, await refused.json()]).toEqual([
      403,
      { error: 'this needs the scope agents:write', code: 'forbidden_scope' },
    ])
    expect((await send('DELETE', `/v1/api-keys/${made.key.id}`)).status).toBe(204)
    expect((await send('GET', '/v1/agents', undefined, made.rawKey)).status).toBe(401)
  })

  it('makes one agent of equal calls with one key, and repeats the answer', async () => {
    const body = { name: 'clerk', manifest: { systemPrompt: 'Be brief.' } }
    const create = () => send('POST', '/v1/agents', body, RUNTIME_KEY, { 'idempotency-key': 'one' })
    const first = await create()
    const made = agentCreated.parse(await first.json())
    expect([first.status, first.headers.get('idempotency-replayed'), made.version]).toEqual([201, null, 1])
    const second = await create()
    expect([second.status, second.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    expect(await second.json()).toEqual(made)
    expect((await send('GET', '/v1/agents/clerk/versions')).status).toBe(200)
    const updated = await send('POST', '/v1/agents', { name: 'clerk', manifest: { systemPrompt: 'Be long.' } })
    expect(agentCreated.parse(await updated.json()).version).toBe(2)
  })

  it('refuses a login in the same words whoever it is, and the eleventh of a minute', async () => {
    const attempt = () => send('POST', '/auth/login', { email: 'eve@example.com', password: 'guess' }, '')
    const tries = limitHosts.includes(host) ? 11 : 1
    // At once: where the portable scrypt is slow and the machine busy, one after another would take more than a minute.
    const answers = await Promise.all(Array.from({ length: tries }, attempt))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(10).fill(401), 429].slice(0, tries))
    // Ten times the portable scrypt, which is slow on purpose.
  }, 120_000)
})
