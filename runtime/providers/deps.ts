import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import type { ProviderDirectory } from './directory.ts'
import type { ModelSettingsStore } from './model-settings.ts'
import type { TryDeps } from './try-provider.ts'

export interface ProvidersDeps {
  directory: ProviderDirectory
  settings: ModelSettingsStore
  egress: Pick<EgressClient, 'problem'>
  trying: TryDeps
  now: () => Date
  maxBodyBytes: number
}
