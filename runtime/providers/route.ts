import { ApiError } from '../../shared/http/api-error.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { settingsEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/settings.ts'
import { isProvider, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound } from '../http/own-tenant.ts'
import { checkProvider } from './check-provider.ts'
import type { ProviderDirectory } from './directory.ts'
import { checkPrices, type ModelSettingsStore } from './model-settings.ts'
import { type TryDeps, tryProvider } from './try-provider.ts'

export interface ProvidersDeps {
  directory: ProviderDirectory
  settings: ModelSettingsStore
  egress: Pick<EgressClient, 'problem'>
  trying: TryDeps
  now: () => Date
}

/** Model providers, aliases and prices (docs/spec/runtime.md §10). Keys go in and never come out. */
export function providerOperations({ directory, settings, egress, trying, now }: ProvidersDeps): Operation[] {
  return [
    operation(endpoints.saveProvider, async ({ principal, body }) => {
      await checkProvider(body, egress)
      await directory.save(principal.tenantId, body)
      const { provider, baseUrl } = body
      return { provider, configured: true, status: 'saved', ...(baseUrl !== undefined && { baseUrl }) } as const
    }),
    operation(endpoints.providers, ({ principal }) => directory.list(principal.tenantId)),
    operation(endpoints.testProvider, async ({ principal: { tenantId }, params, body }) => {
      const provider = asProvider(params.provider)
      if (!(await directory.ids(tenantId)).has(provider)) throw notFound('model provider', provider)
      const result = await tryProvider(trying, { tenantId, provider, model: body.model })
      await directory.tried(tenantId, provider, { atMs: now().getTime(), success: result.success })
      return result
    }),
    operation(endpoints.removeProvider, async ({ principal, params }) => {
      const provider = asProvider(params.provider)
      if (await directory.remove(principal.tenantId, provider)) return
      if (!directory.isOfEnvironment(provider)) throw notFound('model provider', provider)
      throw new ApiError('not_found', `${provider} is not stored: it comes from the environment of the service`)
    }),
    operation(endpoints.models, ({ principal }) => settings.get(principal.tenantId)),
    operation(endpoints.saveModels, async ({ principal, body }) => {
      checkPrices(body)
      await settings.put(principal.tenantId, body, now().getTime())
      return body
    }),
  ]
}

function asProvider(given: string): ProviderId {
  if (!isProvider(given)) throw notFound('model provider', given)
  return given
}
