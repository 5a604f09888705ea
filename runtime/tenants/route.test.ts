import { afterEach, beforeEach, expect, it } from 'vitest'
import { type ApiKeyCreated, type Tenant, tenant } from '../../shared/wire/runtime/auth.ts'
import { type Fixture, fixture } from '../auth/testing/fixture.ts'

let here: Fixture
beforeEach(async () => {
  here = await fixture()
})
afterEach(() => here.close())

it('begins with the tenant default', async () => {
  const { body } = await here.call<Tenant[]>('GET', '/v1/tenants')
  expect(body).toHaveLength(1)
  expect(tenant.parse(body[0])).toMatchObject({ id: 'default', name: 'default' })
})

it('makes a tenant once for each idempotency key, and keys inside it', async () => {
  const headers = { 'idempotency-key': 'k' }
  const make = () => here.call<Tenant>('POST', '/v1/tenants', { body: { name: 'Acme' }, headers })
  const [first, second] = [await make(), await make()]
  expect(second.body).toEqual(tenant.parse(first.body))
  const mint = () =>
    here.call<ApiKeyCreated>('POST', `/v1/tenants/${first.body.id}/api-keys`, { body: { name: 'k' }, headers })
  const key = await mint()
  expect((await mint()).body).toEqual({ ...key.body, rawKey: '***' })
  await here.call('POST', '/v1/agents', { key: key.body.rawKey, body: { name: 'theirs' } })
  expect((await here.call('GET', '/v1/agents/theirs')).status).toBe(404)
  expect((await here.call('POST', '/v1/tenants/ghost/api-keys', { body: { name: 'k' } })).body.error).toBe(
    'tenant not found: ghost',
  )
})

it('deletes a tenant that is empty, and says what one that is not still has', async () => {
  const id = await here.newTenant()
  const { rawKey, key } = await here.newKey({}, id)
  await here.call('POST', '/v1/agents', { key: rawKey, body: { name: 'a' }, headers: { 'idempotency-key': 'x' } })
  const remove = () => here.call('DELETE', `/v1/tenants/${id}`)
  expect(await remove()).toMatchObject({
    status: 409,
    body: { code: 'in_use', error: 'the tenant still has active API keys, agents: remove them first' },
  })
  await here.call('DELETE', '/v1/agents/a', { key: rawKey })
  expect((await remove()).body.error).toMatch(/has active API keys:/)
  await here.call('DELETE', `/v1/api-keys/${key.id}`, { key: rawKey })
  expect((await remove()).status).toBe(204)
  expect((await remove()).status).toBe(404)
  for (const table of ['tenants', 'agents', 'agent_versions', 'api_keys', 'idempotency']) {
    const column = table === 'tenants' ? 'id' : 'tenant_id'
    const { rows } = await here.db.execute({ sql: `select 1 from ${table} where ${column} = ?`, args: [id] })
    expect(rows, table).toEqual([])
  }
})

it('keeps the first tenant', async () => {
  expect((await here.call('DELETE', '/v1/tenants/default')).body.code).toBe('in_use')
})
