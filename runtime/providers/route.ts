import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../shared/http/api-error.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { settingsEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/settings.ts'
import { isProvider, modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings, ProviderTested } from '../../shared/wire/runtime/provider.ts'
import { StepFailure } from '../execution/failure.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound } from '../http/own-tenant.ts'
import { checkProvider } from './check-provider.ts'
import type { ProviderDirectory } from './directory.ts'
import { checkPrices, type ModelSettingsStore } from './model-settings.ts'
import type { ProviderModels } from './models.ts'
import { listedModels } from './only-model.ts'
import { SMALL_QUESTION } from './vendor/ask-vendor.ts'
import { vendorOf } from './vendors.ts'

export interface ProvidersDeps {
  directory: ProviderDirectory
  settings: ModelSettingsStore
  /** Hands settings of models to the nodes of a tenant: what to write with them, and what to do after that. */
  settingsToNodes: (tenantId: string, settings: ModelSettings) => Promise<{ frames: InStatement[]; wake: () => void }>
  egress: Pick<EgressClient, 'problem'>
  trying: TryDeps
  now: () => Date
}

/** Model providers, aliases and prices (docs/spec/runtime.md §10). Keys go in and never come out. */
export function providerOperations({
  directory,
  settings,
  settingsToNodes,
  egress,
  trying,
  now,
}: ProvidersDeps): Operation[] {
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
      const { frames, wake } = await settingsToNodes(principal.tenantId, body)
      await settings.put(principal.tenantId, body, now().getTime(), frames)
      wake()
      return body
    }),
  ]
}

function asProvider(given: string): ProviderId {
  if (!isProvider(given)) throw notFound('model provider', given)
  return given
}

interface TryDeps {
  directory: Pick<ProviderDirectory, 'open'>
  settings: Pick<ModelSettingsStore, 'get'>
  models: Pick<ProviderModels, 'of'>
  fetch: EgressClient['fetch']
  newId: () => string
  monotonic: () => number
}

const TRY_MS = 30_000

interface ProviderTrial {
  tenantId: string
  provider: ProviderId
  model: string | undefined
}

/** Makes one small call to a provider. A refusal of the provider is the result, and no internal error. */
async function tryProvider(
  deps: TryDeps,
  { tenantId, provider, model: given }: ProviderTrial,
): Promise<ProviderTested> {
  const signal = AbortSignal.timeout(TRY_MS)
  try {
    const model = given === undefined ? await someModel(deps, tenantId, provider, signal) : plainName(provider, given)
    if (model === undefined) {
      return { success: false, provider, error: 'the provider names no model to try: say one as "model"' }
    }
    const before = deps.monotonic()
    const answer = await deps.models.of(tenantId, provider, model).ask(SMALL_QUESTION, { key: deps.newId(), signal })
    const latencyMs = Math.round(deps.monotonic() - before)
    return { success: true, provider, model: answer.model, latencyMs, message: 'the provider answered' }
  } catch (error) {
    if (error instanceof StepFailure) return { success: false, provider, error: error.message }
    if (signal.aborted) return { success: false, provider, error: `no answer in ${TRY_MS / 1000} seconds` }
    throw error
  }
}

/** Both `claude-x` and `anthropic/claude-x` name a model of anthropic. */
function plainName(provider: ProviderId, model: string): string {
  return model.startsWith(`${provider}/`) ? model.slice(provider.length + 1) : model
}

/** A model that the tenant uses itself, else a small one of the vendor, else the first that the host lists. */
async function someModel(
  { directory, settings, fetch }: TryDeps,
  tenantId: string,
  provider: ProviderId,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { smallModel } = vendorOf(provider)
  if (smallModel !== undefined) return smallModel
  const { aliases } = await settings.get(tenantId)
  for (const candidate of Object.values(aliases).flat()) {
    const name = modelName(candidate)
    if (name?.kind === 'model' && name.provider === provider) return name.model
  }
  const connection = await directory.open(tenantId, provider)
  if (!connection) return undefined
  try {
    const [first] = await listedModels(fetch, connection, signal)
    return first
  } catch {
    // The call itself would fail in the same way, and says more about it.
    return 'default'
  }
}
