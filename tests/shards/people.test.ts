import { afterAll, beforeAll, expect, it } from 'vitest'
import { moveToShard } from '../../runtime/host/move-shard.ts'
import type { RuntimeService } from '../../runtime/host/node.ts'
import { withDirectory } from '../../runtime/host/shard-admin.ts'
import type { LoggedIn, TenantChoice } from '../../shared/wire/runtime/auth.ts'
import type { PersonLink } from '../../shared/wire/runtime/user.ts'
import { callAt, newTenant, type ShardedStores, serveHere, shardedStores } from './fixture.ts'

const PASSWORD = 'correct horse battery'
let stores: ShardedStores
let service: RuntimeService
const tenants = new Map<string, { id: string; key: string }>()
beforeAll(async () => {
  stores = await shardedStores(['a', 'b'], { servers: false })
  service = await serveHere(stores)
  for (let number = 0; tenants.size < 2; number++) {
    const tenant = await newTenant(service.origin, `t${number}`)
    const place = await withDirectory(stores.vars, shards => shards.shardOf(tenant.id))
    tenants.set(place!.shard, tenant)
  }
}, 60_000)
afterAll(async () => {
  await service?.close()
  await stores?.close()
})

const login = (email: string, tenantId?: string) =>
  callAt<LoggedIn & TenantChoice>(service.origin, 'POST', '/auth/login', {
    key: '',
    body: { email, password: PASSWORD, ...(tenantId !== undefined && { tenantId }) },
  })

/** A person of a tenant, who has set the password. */
async function joined(shard: string, email: string): Promise<void> {
  const body = { email, name: email, role: 'member' }
  const { key } = tenants.get(shard)!
  const made = await callAt<PersonLink>(service.origin, 'POST', '/v1/users', { key, body })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const accepted = { key: '', body: { token: made.body.linkToken, password: PASSWORD } }
  expect((await callAt(service.origin, 'POST', '/auth/invitation', accepted)).status).toBe(200)
  // It is good once.
  expect((await callAt(service.origin, 'POST', '/auth/invitation', accepted)).status).toBe(401)
}

const cookieOf = (headers: Headers) =>
  headers
    .getSetCookie()
    .map(one => one.split(';')[0])
    .join('; ')

it('people of every shard are invited, log in and use the dashboard through one origin', async () => {
  for (const shard of ['a', 'b']) {
    const email = `only-${shard}@example.com`
    await joined(shard, email)
    const told = await login(email)
    expect(told.status, JSON.stringify(told.body)).toBe(200)
    expect(told.body.user.tenantId).toBe(tenants.get(shard)!.id)
    const headers = { cookie: cookieOf(told.headers), 'x-csrf-token': told.body.csrfToken }
    const agents = await callAt<{ name: string }[]>(service.origin, 'GET', '/ui/api/v1/agents', { key: '', headers })
    expect(agents.body.map(({ name }) => name)).toEqual(['worker'])
    const page = await fetch(`${service.origin}/agents`, { headers })
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('worker')])
    expect((await callAt(service.origin, 'POST', '/auth/logout', { key: '', headers })).status).toBeLessThan(300)
    expect((await callAt(service.origin, 'GET', '/ui/api/v1/agents', { key: '', headers })).status).toBe(401)
  }
  for (const path of ['/login', '/ui/files/shell.css']) {
    const answer = await fetch(service.origin + path, { redirect: 'manual' })
    await answer.body?.cancel()
    expect(answer.status, path).toBeLessThan(404)
  }
})

it('a password that fits tenants of two shards asks which of them, and unknown people are refused', async () => {
  for (const shard of ['a', 'b']) await joined(shard, 'both@example.com')
  const asked = await login('both@example.com')
  expect([asked.status, asked.body.code]).toEqual([409, 'several_tenants'])
  const ids = [...tenants.values()].map(({ id }) => id)
  expect(asked.body.tenants.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  for (const id of ids) {
    const told = await login('both@example.com', id)
    expect([told.status, told.body.user.tenantId]).toEqual([200, id])
  }
  expect((await login('nobody@example.com')).status).toBe(401)
  expect((await login('both@example.com', 'ghost')).status).toBe(401)
})

it('who is logged in stays so while the tenant is moved', async () => {
  const told = await login('only-a@example.com')
  const headers = { cookie: cookieOf(told.headers), 'x-csrf-token': told.body.csrfToken }
  await moveToShard(stores.vars, { tenantId: tenants.get('a')!.id, to: 'b' })
  await new Promise(resolve => setTimeout(resolve, 1500))
  const changed = { key: '', headers, body: { name: 'made-after', manifest: { model: 'demo/echo' } } }
  const made = await callAt(service.origin, 'POST', '/ui/api/v1/agents', changed)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const again = await login('only-a@example.com')
  expect([again.status, again.body.user.tenantId]).toEqual([200, tenants.get('a')!.id])
})
