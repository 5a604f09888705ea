import { ApiError } from '../../shared/http/api-error.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Tenant } from '../../shared/wire/runtime/auth.ts'
import { accessEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/access.ts'
import { keyWithoutSecret, mintKey } from '../auth/keys/mint.ts'
import type { KeyStore } from '../auth/keys/store.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import type { TenantRow, TenantStore } from './store.ts'

export interface TenantsDeps {
  db: Db
  tenants: TenantStore
  keys: KeyStore
  now: () => Date
  newId: () => string
}

/** Tenants and the first keys in them, for the platform's administrator (docs/spec/runtime.md §13). */
export function tenantOperations({ db, tenants, keys, now, newId }: TenantsDeps): Operation[] {
  async function find(id: string): Promise<TenantRow> {
    const tenant = await tenants.get(id)
    if (tenant === undefined) throw notFound('tenant', id)
    return tenant
  }

  return [
    operation(endpoints.tenants, async call => {
      const page = pageOf(call)
      const rows = await tenants.list(page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toTenant)
    }),
    keyedOperation(
      endpoints.createTenant,
      async ({ body: { name }, idempotency }) => {
        const tenant = { id: newId(), name, createdMs: now().getTime() }
        await db.write([tenants.insert(tenant), ...idempotency.bind(tenant.id)])
        return toTenant(tenant)
      },
      { again: async (_, id) => toTenant(await find(id)) },
    ),
    operation(endpoints.removeTenant, async ({ params }) => {
      const { id } = await find(params.id)
      if (id === FIRST_TENANT) throw new ApiError('in_use', 'the first tenant cannot be deleted')
      const held = await tenants.remove(id)
      if (held.length > 0) throw new ApiError('in_use', `the tenant still has ${held.join(', ')}: remove them first`)
    }),
    keyedOperation(
      endpoints.createTenantKey,
      async ({ principal, params, body, idempotency }) => {
        const tenant = await find(params.id)
        const { id, statement, answer } = mintKey({ store: keys, now, newId }, principal, tenant.id, body)
        await db.write([statement, ...idempotency.bind(id)])
        return answer
      },
      { oneTime: ['rawKey'], again: (_, id) => keyWithoutSecret(keys, id, now()) },
    ),
  ]
}

function toTenant({ id, name, createdMs }: TenantRow): Tenant {
  return { id, name, createdAt: new Date(createdMs).toISOString() }
}
