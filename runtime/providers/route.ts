import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { isProvider, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import {
  type ModelSettings,
  modelSettings,
  type ProviderSaved,
  providerSave,
  providerTest,
} from '../../shared/wire/runtime/provider.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound } from '../http/own-tenant.ts'
import { checkProvider } from './check-provider.ts'
import type { ProvidersDeps } from './deps.ts'
import { checkPrices } from './model-settings.ts'
import { tryProvider } from './try-provider.ts'

/** Model providers, aliases and prices (docs/spec/runtime.md §10). Keys go in and never come out. */
export function providersRoute({ directory, settings, egress, trying, now, maxBodyBytes }: ProvidersDeps) {
  return new Hono<RuntimeHttpEnv>()
    .post('/v1/settings/llm-providers', jsonBody(providerSave, maxBodyBytes), async c => {
      const given = c.req.valid('json')
      await checkProvider(given, egress)
      await directory.save(c.get('principal').tenantId, given)
      const { provider, baseUrl } = given
      const saved = { provider, configured: true, status: 'saved', ...(baseUrl !== undefined && { baseUrl }) } as const
      return c.json(saved satisfies ProviderSaved)
    })
    .get('/v1/settings/llm-providers', async c => c.json(await directory.list(c.get('principal').tenantId)))
    .post('/v1/settings/llm-providers/:provider/test', jsonBody(providerTest, maxBodyBytes), async c => {
      const { tenantId } = c.get('principal')
      const provider = asProvider(c.req.param('provider'))
      if (!(await directory.ids(tenantId)).has(provider)) throw notFound('model provider', provider)
      const result = await tryProvider(trying, { tenantId, provider, model: c.req.valid('json').model })
      await directory.tried(tenantId, provider, { atMs: now().getTime(), success: result.success })
      return c.json(result)
    })
    .delete('/v1/settings/llm-providers/:provider', async c => {
      const provider = asProvider(c.req.param('provider'))
      if (!(await directory.remove(c.get('principal').tenantId, provider))) {
        if (!directory.isOfEnvironment(provider)) throw notFound('model provider', provider)
        throw new ApiError('not_found', `${provider} is not stored: it comes from the environment of the service`)
      }
      return c.body(null, 204)
    })
    .get('/v1/settings/models', async c => c.json(await settings.get(c.get('principal').tenantId)))
    .put('/v1/settings/models', jsonBody(modelSettings, maxBodyBytes), async c => {
      const given: ModelSettings = c.req.valid('json')
      checkPrices(given)
      await settings.put(c.get('principal').tenantId, given, now().getTime())
      return c.json(given)
    })
}

function asProvider(given: string): ProviderId {
  if (!isProvider(given)) throw notFound('model provider', given)
  return given
}
