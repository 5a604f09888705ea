import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, params } from '../../shared/http/validate.ts'
import { type SecretItem, secretParams, secretPut } from '../../shared/wire/runtime/provider.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound } from '../http/own-tenant.ts'
import type { SecretRow, SecretStore } from './store.ts'

export interface SecretsRouteDeps {
  secrets: SecretStore
  maxBodyBytes: number
}

/** Names and bindings of secrets, never their values (docs/spec/runtime.md §10). */
export function secretsRoute({ secrets, maxBodyBytes }: SecretsRouteDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/secrets', async c => c.json((await secrets.list(c.get('principal').tenantId)).map(toItem)))
    .put('/v1/secrets/:name', params(secretParams), jsonBody(secretPut, maxBodyBytes), async c => {
      const { name } = c.req.valid('param')
      const stored = await secrets.put(c.get('principal').tenantId, name, c.req.valid('json'))
      if (stored === undefined) {
        const [path, message] = ['value', `there is no secret ${name} yet: send its value as well`]
        throw new ApiError('validation_failed', `${path}: ${message}`, { details: [{ path, message }] })
      }
      return c.json(toItem(stored))
    })
    .delete('/v1/secrets/:name', async c => {
      const name = c.req.param('name')
      if (!(await secrets.remove(c.get('principal').tenantId, name))) throw notFound('secret', name)
      return c.body(null, 204)
    })
}

function toItem({ name, updatedMs, binding }: SecretRow): SecretItem {
  return { name, ...binding, updatedAt: new Date(updatedMs).toISOString() }
}
