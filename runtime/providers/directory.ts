import { readJson } from '../../shared/json/read-json.ts'
import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ProviderItem, ProviderSave } from '../../shared/wire/runtime/provider.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import { type Sealing, type VaultAad, vaultToStore } from '../vault/vault.ts'
import type { EnvironmentProvider } from './environment.ts'
import type { ProviderRow, ProviderStore, Try } from './store.ts'
import { vendorOf } from './vendors.ts'

export interface DirectoryDeps {
  store: ProviderStore
  sealing: Sealing
  environment: readonly EnvironmentProvider[]
  now: () => Date
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
}

export type ProviderDirectory = ReturnType<typeof providerDirectory>

/** The providers of a tenant: those it stored, then those of the environment. */
export function providerDirectory({ store, sealing, environment, now, redact }: DirectoryDeps) {
  const startedMs = now().getTime()
  for (const { apiKey } of environment) redact(apiKey)
  const ofEnvironment = (provider: string) => environment.find(one => one.provider === provider)

  async function stored(tenantId: string, row: ProviderRow): Promise<Connection> {
    const vault = await sealing()
    const open = async (sealed: string | undefined, field: string) => {
      if (sealed === undefined) return undefined
      if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
      return vault.open(sealed, aadOf(tenantId, row.provider, field))
    }
    const apiKey = await open(row.sealedKey, 'apiKey')
    const headers = readJson((await open(row.sealedHeaders, 'headers')) ?? '{}') as Record<string, string>
    return connected({ provider: row.provider, apiKey, baseUrl: row.baseUrl, headers })
  }

  function connected(given: Omit<Connection, 'baseUrl'> & { baseUrl: string | undefined }): Connection {
    redact(given.apiKey)
    for (const value of Object.values(given.headers)) redact(value)
    return { ...given, baseUrl: given.baseUrl ?? vendorOf(given.provider).baseUrl ?? '' }
  }

  return {
    /** Which providers a tenant has, without a look at any secret. */
    async ids(tenantId: string): Promise<ReadonlySet<ProviderId>> {
      return new Set([...(await store.ids(tenantId)), ...environment.map(({ provider }) => provider)])
    },

    /** Everything that a call needs; undefined when the provider is not configured. */
    async open(tenantId: string, provider: ProviderId): Promise<Connection | undefined> {
      const row = await store.get(tenantId, provider)
      if (row) return stored(tenantId, row)
      const found = ofEnvironment(provider)
      return found && connected({ provider, apiKey: found.apiKey, baseUrl: found.baseUrl, headers: {} })
    },

    async list(tenantId: string): Promise<ProviderItem[]> {
      const [rows, tries] = await Promise.all([store.list(tenantId), store.tries(tenantId)])
      const own = rows.map(({ createdMs, ...row }) =>
        toItem(row, 'stored', { createdMs, updatedMs: row.updatedMs }, tries.get(row.provider)),
      )
      const taken = new Set(rows.map(({ provider }) => provider))
      const given = environment
        .filter(({ provider }) => !taken.has(provider))
        .map(({ provider, apiKey, baseUrl }) => {
          const times = { createdMs: startedMs, updatedMs: startedMs }
          return toItem({ provider, baseUrl, keyHint: keyHint(apiKey) }, 'environment', times, tries.get(provider))
        })
      return [...own, ...given].sort((a, b) => (a.provider < b.provider ? -1 : 1))
    },

    async save(tenantId: string, { provider: id, apiKey, baseUrl, headers = {} }: ProviderSave): Promise<void> {
      const provider = id as ProviderId
      redact(apiKey)
      for (const value of Object.values(headers)) redact(value)
      const hasHeaders = Object.keys(headers).length > 0
      const vault = apiKey === undefined && !hasHeaders ? undefined : await vaultToStore(sealing, 'a provider key')
      const seal = async (text: string | undefined, field: string) =>
        text === undefined ? undefined : vault?.seal(text, aadOf(tenantId, provider, field))
      await store.save(tenantId, {
        provider,
        baseUrl,
        keyHint: keyHint(apiKey),
        updatedMs: now().getTime(),
        sealedKey: await seal(apiKey, 'apiKey'),
        sealedHeaders: await seal(hasHeaders ? JSON.stringify(headers) : undefined, 'headers'),
      })
    },

    remove: store.remove,
    isOfEnvironment: (provider: string) => ofEnvironment(provider) !== undefined,
    tried: store.tried,
  }
}

export const PROVIDER_SEALED: readonly SealedColumn[] = [
  { column: 'sealed_key', field: 'apiKey' },
  { column: 'sealed_headers', field: 'headers' },
].map(({ column, field }) => ({
  table: 'providers',
  column,
  key: ['tenant_id', 'provider'],
  aadOf: ({ tenant_id, provider }) => aadOf(String(tenant_id), String(provider), field),
}))

function aadOf(tenantId: string, provider: string, field: string): VaultAad {
  return { tenantId, recordId: `llm-provider/${provider}`, field }
}

/** The last four characters of a key that is long enough to lose them. */
export function keyHint(apiKey: string | undefined): string | undefined {
  return apiKey !== undefined && apiKey.length > 19 ? apiKey.slice(-4) : undefined
}

function toItem(
  { provider, baseUrl, keyHint: hint }: Pick<ProviderRow, 'provider' | 'baseUrl' | 'keyHint'>,
  source: ProviderItem['source'],
  { createdMs, updatedMs }: { createdMs: number; updatedMs: number },
  tried: Try | undefined,
): ProviderItem {
  return {
    provider,
    configured: true,
    source,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(hint !== undefined && { keyHint: hint }),
    ...(tried && { lastTest: { at: new Date(tried.atMs).toISOString(), success: tried.success } }),
    createdAt: new Date(createdMs).toISOString(),
    updatedAt: new Date(updatedMs).toISOString(),
  }
}

/** A provider with everything a call needs, secrets included: never kept, never logged, never answered. */
export interface Connection {
  provider: ProviderId
  baseUrl: string
  apiKey: string | undefined
  /** Sent with every call, after our own. */
  headers: Readonly<Record<string, string>>
}
