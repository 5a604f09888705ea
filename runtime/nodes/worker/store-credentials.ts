import { ApiError } from '../../../shared/http/api-error.ts'
import type { SecretPut } from '../../../shared/tunnel/gateway.gen.ts'
import { poolCredentialPut } from '../../../shared/wire/runtime/node.ts'
import { type ModelSettings, modelSettings } from '../../../shared/wire/runtime/provider.ts'
import type { ConnectorService } from '../../connectors/service.ts'
import type { ProviderDirectory } from '../../providers/directory.ts'
import type { SecretStore } from '../../secrets/store.ts'
import { credentialAad, MODEL_SETTINGS, refOf } from '../sealed-payloads.ts'

export interface StoreCredentialsDeps {
  tenantId: string
  pool: string
  /** Opens what was sealed to the pool. */
  opened: (box: Uint8Array, place: string) => Promise<unknown>
  secrets: Pick<SecretStore, 'put' | 'remove'>
  providers: Pick<ProviderDirectory, 'save' | 'remove'>
  /** Throws an ApiError for an address or a header that cannot be. */
  checkProvider: (given: Parameters<ProviderDirectory['save']>[1]) => Promise<void>
  connectors: Pick<ConnectorService, 'install' | 'uninstall' | 'store'>
  modelSettings: (tenantId: string, settings: ModelSettings) => Promise<void>
}

const UNKNOWN = 'it does not open, or is not what this version knows'

/** Puts what a control plane sends into the stores that runs here look into. Answers why it could not, where that is for good. */
export function storeCredentials({
  tenantId,
  pool,
  opened,
  secrets,
  providers,
  connectors,
  ...deps
}: StoreCredentialsDeps) {
  async function put(ref: string, sealed: Uint8Array): Promise<void> {
    const sent = await opened(sealed, credentialAad(pool, ref)).catch(() => undefined)
    if (ref === MODEL_SETTINGS) {
      const settings = modelSettings.safeParse(sent)
      if (!settings.success) throw new ApiError('validation_failed', UNKNOWN)
      return deps.modelSettings(tenantId, settings.data)
    }
    const read = poolCredentialPut.safeParse(sent)
    if (!read.success || refOf(read.data) !== ref) throw new ApiError('validation_failed', UNKNOWN)
    const given = read.data
    if ('secret' in given) {
      // The box says all of the binding: what it does not name is lifted.
      const { name, value, hosts = null, tools = null } = given.secret
      await secrets.put(tenantId, name, { value, hosts, tools })
    } else if ('provider' in given) {
      await deps.checkProvider(given.provider)
      await providers.save(tenantId, given.provider)
    } else {
      await connectors.install(tenantId, given.connector, [])
    }
  }

  async function remove(ref: string): Promise<void> {
    const slash = ref.indexOf('/')
    const [kind, name] = [ref.slice(0, slash), ref.slice(slash + 1)]
    if (kind === 'secret') await secrets.remove(tenantId, name)
    if (kind === 'provider') await providers.remove(tenantId, name)
    if (kind !== 'connector') return
    const install = await connectors.store.ofTenant(tenantId, name)
    if (install) await connectors.uninstall(install)
  }

  return async ({ ref, sealed, remove: away }: Pick<SecretPut, 'ref' | 'sealed' | 'remove'>): Promise<string> => {
    try {
      await (away ? remove(ref) : put(ref, sealed))
      return ''
    } catch (error) {
      // What the stores refuse they will refuse again; anything else is tried once more.
      if (error instanceof ApiError) return error.message
      throw error
    }
  }
}
