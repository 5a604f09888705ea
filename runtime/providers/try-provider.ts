import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ProviderTested } from '../../shared/wire/runtime/provider.ts'
import { StepFailure } from '../execution/failure.ts'
import type { ProviderDirectory } from './directory.ts'
import type { ModelSettingsStore } from './model-settings.ts'
import type { ProviderModels } from './models.ts'
import { listedModels } from './only-model.ts'
import { SMALL_QUESTION } from './vendor/ask-vendor.ts'
import { vendorOf } from './vendors.ts'

export interface TryDeps {
  directory: Pick<ProviderDirectory, 'open'>
  settings: Pick<ModelSettingsStore, 'get'>
  models: Pick<ProviderModels, 'of'>
  fetch: EgressClient['fetch']
  newId: () => string
  monotonic: () => number
}

const TRY_MS = 30_000

export interface Wanted {
  tenantId: string
  provider: ProviderId
  model: string | undefined
}

/** Makes one small call to a provider. A refusal of the provider is the result, and no internal error. */
export async function tryProvider(
  deps: TryDeps,
  { tenantId, provider, model: given }: Wanted,
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
