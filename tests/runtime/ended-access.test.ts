import { afterEach, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'

const open: Api[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** A run that waits, whose streams say each 20 ms that they are alive. */
async function fixture() {
  const on = await api({ sseHeartbeatMs: 20 })
  open.push(on)
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait_signal'] } })
  const run = { agentName: 'worker', input: { prompt: '/call wait_signal {"name":"go"}' } }
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', run)
  return { ...on, id }
}

const PASSWORD = 'correct horse battery'

/** Someone who may read, and the headers of their login. */
async function reader({ json, runtime }: Api) {
  const send = (path: string, body: object, headers: Record<string, string> = {}) =>
    runtime.fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    )
  const person = { email: 'grace@example.com', name: 'Grace', role: 'viewer' }
  const { user, linkToken } = await json<{ user: { id: string }; linkToken: string }>(201, 'POST', '/v1/users', person)
  await send('/auth/invitation', { token: linkToken, password: PASSWORD })
  const login = await send('/auth/login', { email: person.email, password: PASSWORD })
  const { csrfToken } = (await login.json()) as { csrfToken: string }
  const headers = { cookie: login.headers.getSetCookie()[0]!.split(';')[0]!, 'x-csrf-token': csrfToken }
  return { id: user.id, headers, logout: () => send('/auth/logout', {}, headers) }
}

describe('an event stream', () => {
  it('ends when its key is revoked', async () => {
    const on = await fixture()
    const { rawKey, key } = await on.json<{ rawKey: string; key: { id: string } }>(201, 'POST', '/v1/api-keys', {
      name: 'reader',
      scopes: ['runs:read'],
    })
    const answer = await on.call('GET', `/v1/runs/${on.id}/events`, undefined, { authorization: `Bearer ${rawKey}` })
    expect(answer.status).toBe(200)
    const all = answer.text()
    await new Promise(resolve => setTimeout(resolve, 100))
    expect((await on.call('DELETE', `/v1/api-keys/${key.id}`)).status).toBe(204)
    expect(await all).toContain(': heartbeat')
  }, 5000)

  it.each<[string, (on: Api, person: Awaited<ReturnType<typeof reader>>) => Promise<Response>]>([
    ['is over', (_, { logout }) => logout()],
    ['was a person’s who is removed', ({ call }, { id }) => call('DELETE', `/v1/users/${id}`)],
    ['was a person’s who is disabled', ({ call }, { id }) => call('PATCH', `/v1/users/${id}`, { disabled: true })],
  ])(
    'and a live page end when their login %s',
    async (_, end) => {
      const on = await fixture()
      const person = await reader(on)
      const { headers } = person
      const ask = async (path: string) => {
        const answer = await on.runtime.fetch(new Request(`http://localhost${path}`, { headers }))
        expect(answer.status).toBe(200)
        return answer.text()
      }
      const both = [ask(`/ui/api/v1/runs/${on.id}/events`), ask('/ui/live')]
      await new Promise(resolve => setTimeout(resolve, 100))
      expect((await end(on, person)).status).toBeLessThan(300)
      for (const all of both) expect(await all).toContain(': heartbeat')
    },
    10_000,
  )
})
