import { Hono } from 'hono'
import { jsonBody, params } from '../../shared/http/validate.ts'
import { type SecretItem, secretParams, secretPut } from '../../shared/wire/runtime/provider.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound } from '../http/own-tenant.ts'
import type { SecretRow, SecretStore } from './store.ts'

export interface SecretsRouteDeps {
  secrets: SecretStore
  maxBodyBytes: number
}

/** Names of secrets, never their values (contract §10). */
export function secretsRoute({ secrets, maxBodyBytes }: SecretsRouteDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/secrets', async c => c.json((await secrets.list(c.get('principal').tenantId)).map(toItem)))
    .put('/v1/secrets/:name', params(secretParams), jsonBody(secretPut, maxBodyBytes), async c => {
      const { name } = c.req.valid('param')
      const { value } = c.req.valid('json')
      return c.json(toItem(await secrets.put(c.get('principal').tenantId, name, value)))
    })
    .delete('/v1/secrets/:name', async c => {
      const name = c.req.param('name')
      if (!(await secrets.remove(c.get('principal').tenantId, name))) throw notFound('secret', name)
      return c.body(null, 204)
    })
}

function toItem({ name, updatedMs }: SecretRow): SecretItem {
  return { name, updatedAt: new Date(updatedMs).toISOString() }
}
