import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Api, api } from './api.ts'

let service: Api

beforeAll(async () => {
  service = await api({ masterKey: new Uint8Array(32).fill(7) })
  await service.json(201, 'POST', '/v1/agents', { name: 'clerk', manifest: { systemPrompt: 'Be brief.' } })
})
afterAll(() => service.close())

type Json = Record<string, unknown>

/** Of each resource: how it is made, where it is read, and how it is written. */
const RESOURCES: Record<
  string,
  () => Promise<{ read: string; write: [method: string, path: string, status: number] }>
> = {
  async agent() {
    return { read: '/v1/agents/clerk', write: ['POST', '/v1/agents', 201] }
  },
  async 'labels of an agent'() {
    return { read: '/v1/agents/clerk', write: ['PATCH', '/v1/agents/clerk', 200] }
  },
  async budget() {
    const path = '/v1/agents/clerk/budget'
    await service.json(200, 'PUT', path, { maxRunsPerDay: 10 })
    return { read: path, write: ['PUT', path, 200] }
  },
  async schedule() {
    const { id } = await service.json<{ id: string }>(201, 'POST', '/v1/schedules', {
      agentName: 'clerk',
      cronExpr: '0 9 * * *',
    })
    return { read: `/v1/schedules/${id}`, write: ['PUT', `/v1/schedules/${id}`, 200] }
  },
  async person() {
    const { user } = await service.json<{ user: { id: string } }>(201, 'POST', '/v1/users', {
      email: 'ann@example.com',
      name: 'Ann',
    })
    return { read: `/v1/users/${user.id}`, write: ['PATCH', `/v1/users/${user.id}`, 200] }
  },
  async 'models of a deployment'() {
    return { read: '/v1/settings/models', write: ['PUT', '/v1/settings/models', 200] }
  },
}

describe.each(Object.entries(RESOURCES))('what GET answers of the %s', (_, made) => {
  it('is taken back as it is', async () => {
    const { read, write } = await made()
    const [method, path, status] = write
    const record = await service.json<Json>(200, 'GET', read)
    await service.json(status, method, path, record)
    const { updatedAt: _, ...again } = await service.json<Json>(200, 'GET', read)
    expect(again).toEqual(Object.fromEntries(Object.entries(record).filter(([name]) => name !== 'updatedAt')))
  })
})

describe('a member that the service alone writes', () => {
  it('is refused with a sentence where it differs from the record', async () => {
    const path = '/v1/agents/clerk/budget'
    await service.json(200, 'PUT', path, { maxRunsPerDay: 10 })
    const record = await service.json<Json>(200, 'GET', path)
    for (const [name, value, said] of [
      ['agentName', 'other', 'agentName: the record says "clerk"; leave it out or send that'],
      ['updatedAt', '2020-01-01T00:00:00.000Z', /^updatedAt: the record says "20\d\d-.*Z"; leave it out or send that$/],
    ] as const) {
      const answer = await service.call('PUT', path, { ...record, [name]: value })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({
        code: 'validation_failed',
        error: typeof said === 'string' ? said : expect.stringMatching(said),
        details: [{ path: name }],
      })
    }
    expect(await service.json<Json>(200, 'GET', path)).toEqual(record)
  })

  it('is held against the path where there is no record yet', async () => {
    await service.json(201, 'POST', '/v1/agents', { name: 'fresh' })
    const path = '/v1/agents/fresh/budget'
    const refused = await service.call('PUT', path, { agentName: 'clerk', maxRunsPerDay: 1 })
    expect(await refused.json()).toMatchObject({
      error: 'agentName: the record says "fresh"; leave it out or send that',
    })
    await service.json(200, 'PUT', path, { agentName: 'fresh', maxRunsPerDay: 1 })
    const unknown = await service.call('POST', '/v1/agents', {
      name: 'newer',
      id: '01a20000-0000-7000-8000-000000000000',
    })
    expect(await unknown.json()).toMatchObject({ error: 'id: there is no record that has one yet; leave it out' })
    expect((await service.call('GET', '/v1/agents/newer')).status).toBe(404)
  })

  it('is not held against what has moved by itself since', async () => {
    const path = '/v1/agents/clerk/budget'
    await service.json(200, 'PUT', path, { maxRunsPerDay: 10 })
    const record = await service.json<Json>(200, 'GET', path)
    await service.json(201, 'POST', '/v1/runs', { agentName: 'clerk' })
    await service.json(200, 'PUT', path, record)
  })

  it('leaves other unknown keys refused', async () => {
    const answer = await service.call('PUT', '/v1/agents/clerk/budget', { agentName: 'clerk', maxRunPerDay: 1 })
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: 'unknown key: maxRunPerDay; did you mean maxRunsPerDay?' },
    ])
  })

  it('leaves a schedule in the zone of the deployment', async () => {
    const { id } = await service.json<{ id: string }>(201, 'POST', '/v1/schedules', {
      agentName: 'clerk',
      cronExpr: '0 9 * * *',
    })
    const record = await service.json<Json>(200, 'GET', `/v1/schedules/${id}`)
    expect(record.timezoneSource).toBe('utc')
    await service.json(200, 'PUT', `/v1/schedules/${id}`, { ...record, cronExpr: '0 8 * * *' })
    expect(await service.json<Json>(200, 'GET', `/v1/schedules/${id}`)).toMatchObject({
      cronExpr: '0 8 * * *',
      timezone: 'UTC',
      timezoneSource: 'utc',
    })
  })

  it('of a webhook is taken from the list as it stands there', async () => {
    await service.json(201, 'POST', '/v1/webhooks', { url: 'https://93.184.216.34/hook' })
    const [record] = await service.json<Json[]>(200, 'GET', '/v1/webhooks')
    const path = `/v1/webhooks/${String(record!.id)}`
    expect(await service.json(200, 'PUT', path, { ...record, enabled: false })).toMatchObject({ enabled: false })
    const answer = await service.call('PUT', path, { id: 'other' })
    expect([answer.status, await answer.json()]).toMatchObject([400, { details: [{ path: 'id' }] }])
  })

  it('stands in the published document as read-only', async () => {
    const answer = await service.call('GET', '/openapi.json')
    const { components } = (await answer.json()) as { components: { schemas: Record<string, { properties: Json }> } }
    expect(components.schemas.BudgetPut!.properties).toMatchObject({
      agentName: { readOnly: true },
      today: { readOnly: true },
    })
    expect(components.schemas.BudgetPut!.properties.maxRunsPerDay).not.toHaveProperty('readOnly')
  })
})
