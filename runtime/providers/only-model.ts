import { asArray, asObject, asString, tryParse } from '../../shared/dialects/json-value.ts'
import { readAtMost } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { isStoreUnavailable } from '../../shared/sql/db-fault.ts'
import { modelName, type ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'
import type { Connection } from './directory.ts'
import { callHeaders } from './vendor/ask-vendor.ts'
import { dialectOf, modelsUrl, vendorOf } from './vendors.ts'

/** How long a list counts; an operator who adds a second model to a host has chosen between them by then. */
const LIST_MS = 60_000
const MOST_WAIT_MS = 5000
const MAX_LIST_BYTES = 4 * 1024 * 1024
const MOST_LISTS = 1000

/** The ids of the models that a host lists, in its order. Rejects where it gives no list. */
export async function listedModels(
  fetch: EgressClient['fetch'],
  connection: Connection,
  signal: AbortSignal,
): Promise<string[]> {
  const dialect = dialectOf(vendorOf(connection.provider), '')
  const headers = callHeaders(connection, dialect)
  const answer = await fetch(modelsUrl(connection.baseUrl, dialect), { headers, signal })
  const { body } = await readAtMost(answer, MAX_LIST_BYTES)
  if (!answer.ok) throw new Error(`${connection.provider} answered ${answer.status}`)
  return asArray(asObject(tryParse(new TextDecoder().decode(body))).data).flatMap(
    one => asString(asObject(one).id) ?? [],
  )
}

export interface OnlyModelDeps {
  open: (tenantId: string, provider: ProviderId) => Promise<Connection | undefined>
  fetch: EgressClient['fetch']
  now: () => Date
}

/**
 * What `auto` means where the only provider is a host of the tenant's own, whose models no built-in list can know: the one model of it that
 * the tenant's settings name, else the one that it lists. Undefined where there are several, or none.
 */
export function onlyModel({ open, fetch, now }: OnlyModelDeps) {
  const lists = new Map<string, { models: Promise<string[]>; untilMs: number }>()

  async function list(tenantId: string, provider: ProviderId): Promise<string[]> {
    const connection = await open(tenantId, provider).catch((error: unknown) => {
      if (isStoreUnavailable(error)) throw error
      return undefined
    })
    if (!connection) return []
    const key = JSON.stringify([tenantId, provider, connection.baseUrl])
    const nowMs = now().getTime()
    const seen = lists.get(key)
    if (seen && nowMs < seen.untilMs) return seen.models
    const models = listedModels(fetch, connection, AbortSignal.timeout(MOST_WAIT_MS)).catch(() => {
      // It may be there the next moment.
      lists.delete(key)
      return []
    })
    if (lists.size >= MOST_LISTS) lists.clear()
    lists.set(key, { models, untilMs: nowMs + LIST_MS })
    return models
  }

  return async (tenantId: string, configured: ReadonlySet<ProviderId>, settings: ModelSettings) => {
    const [provider, ...others] = [...configured].filter(one => one !== 'demo')
    if (provider === undefined || others.length > 0 || !provider.startsWith('openai-compatible')) return undefined
    const named = namedModels(settings, provider)
    const [model, ...more] = named.length > 0 ? named : await list(tenantId, provider)
    return model === undefined || more.length > 0 ? undefined : { provider, model }
  }
}

/** The models of a provider that settings speak of: as candidates, with prices, with windows. */
function namedModels({ aliases, prices, windows }: ModelSettings, provider: ProviderId): string[] {
  const names = [...Object.values(aliases).flat(), ...Object.keys(prices), ...Object.keys(windows)]
  const models = names.map(name => modelName(name)).map(name => (name?.kind === 'model' ? name : undefined))
  return [...new Set(models.flatMap(name => (name?.provider === provider ? [name.model] : [])))]
}
