import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import type { Db } from '../../shared/sql/db.ts'
import { apiKeyCreate, type Tenant, tenantCreate } from '../../shared/wire/runtime/auth.ts'
import { pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { keyAgain, mintKey } from '../auth/keys/mint.ts'
import type { KeyStore } from '../auth/keys/store.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import type { Idempotent } from '../http/idempotent.ts'
import { notFound } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import type { TenantRow, TenantStore } from './store.ts'

export interface TenantsDeps {
  db: Db
  tenants: TenantStore
  keys: KeyStore
  idempotent: Idempotent
  now: () => Date
  newId: () => string
  maxBodyBytes: number
}

/** Tenants and the first keys in them, for the platform's administrator (docs/spec/runtime.md §13). */
export function tenantsRoute({ db, tenants, keys, idempotent, now, newId, maxBodyBytes }: TenantsDeps) {
  async function find(id: string): Promise<TenantRow> {
    const tenant = await tenants.get(id)
    if (tenant === undefined) throw notFound('tenant', id)
    return tenant
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/v1/tenants', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await tenants.list(page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toTenant))
    })
    .post(
      '/v1/tenants',
      jsonBody(tenantCreate, maxBodyBytes),
      idempotent({ again: async (c, id) => c.json(toTenant(await find(id)), 201) }),
      async c => {
        const tenant = { id: newId(), name: c.req.valid('json').name, createdMs: now().getTime() }
        const bind = c.get('idempotency')?.statement(tenant.id)
        await db.write([tenants.insert(tenant), ...(bind ? [bind] : [])])
        return c.json(toTenant(tenant), 201)
      },
    )
    .delete('/v1/tenants/:id', async c => {
      const { id } = await find(c.req.param('id'))
      if (id === FIRST_TENANT) throw new ApiError('in_use', 'the first tenant cannot be deleted')
      const held = await tenants.remove(id)
      if (held.length > 0) throw new ApiError('in_use', `the tenant still has ${held.join(', ')}: remove them first`)
      return c.body(null, 204)
    })
    .post(
      '/v1/tenants/:id/api-keys',
      jsonBody(apiKeyCreate, maxBodyBytes),
      idempotent({ oneTime: ['rawKey'], again: async (c, id) => c.json(await keyAgain(keys, id, now()), 201) }),
      async c => {
        const tenant = await find(c.req.param('id'))
        const minted = mintKey({ store: keys, now, newId }, c.get('principal'), tenant.id, c.req.valid('json'))
        const bind = c.get('idempotency')?.statement(minted.id)
        await db.write([minted.statement, ...(bind ? [bind] : [])])
        return c.json(minted.answer, 201)
      },
    )
}

function toTenant({ id, name, createdMs }: TenantRow): Tenant {
  return { id, name, createdAt: new Date(createdMs).toISOString() }
}
