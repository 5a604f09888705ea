import { type EgressClient, NO_EGRESS } from '../../shared/http/outbound/egress-client.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { type SecretStore, secretStore } from '../secrets/store.ts'
import type { Sealing } from '../vault/vault.ts'
import { providerDirectory } from './directory.ts'
import type { EnvironmentProvider } from './environment.ts'
import { modelSettingsStore } from './model-settings.ts'
import { type ProviderModels, providerModels } from './models.ts'
import type { ProvidersDeps } from './route.ts'
import { providerStore } from './store.ts'
import { DEADLINES, type Deadlines } from './vendor/answer-limits.ts'

export interface ProvidingOptions {
  db: Db
  log: Log
  clock: Clock
  newId: () => string
  sealing: Sealing
  /** Without a way out, providers can be configured and not called. */
  egress?: EgressClient | undefined
  environment?: readonly EnvironmentProvider[] | undefined
  /** A router in this process; it is then the provider `router` of everyone. */
  routerFetch?: ((request: Request) => Promise<Response>) | undefined
  demo?: boolean | undefined
  deadlines?: Partial<Deadlines> | undefined
  /** Where an attempt of a step stands in the trace of its run; undefined where nothing is traced. */
  traceparent?: ((key: string) => string) | undefined
  answerBytesAtATime?: number | undefined
}

export interface Providing {
  models: ProviderModels
  providers: Omit<ProvidersDeps, 'settingsToNodes'>
  secrets: SecretStore
}

/** The address of a router that is called as a function. */
const IN_PROCESS = 'http://router.in-process'

/** What keeps a tenant from being deleted. */
export const PROVIDER_HOLDINGS = [
  { what: 'model providers', rows: 'select 1 from providers where tenant_id = ?1' },
  { what: 'secrets', rows: 'select 1 from secrets where tenant_id = ?1' },
]

/** Model providers and secrets, put together; features take the slices they need. */
export function assembleProviders(options: ProvidingOptions): Providing {
  const { db, log, clock, newId, sealing, routerFetch, demo = true } = options
  const deadlines = { ...DEADLINES, ...options.deadlines }
  const { egress = NO_EGRESS, environment = [] } = options
  const { now, monotonic } = clock
  const redact = log.redact.opened
  const inProcess: EnvironmentProvider[] = routerFetch ? [{ provider: 'router', baseUrl: IN_PROCESS }] : []
  const given = [...inProcess, ...environment.filter(({ provider }) => provider !== 'router' || !routerFetch)]
  const directory = providerDirectory({ store: providerStore(db), sealing, environment: given, now, redact })
  const settings = modelSettingsStore(db)
  const router = routerFetch && toRouter(routerFetch, egress.fetch)
  const fetch: EgressClient['fetch'] = (url, init) => (router ?? egress.fetch)(url, init)
  const listPrices = async () => (await import('../../shared/prices/builtin.ts')).loadBuiltinPrices()
  const models = providerModels({
    directory,
    settings,
    fetch,
    listPrices,
    clock,
    log,
    deadlines,
    demo,
    traceparent: options.traceparent,
    answerBytesAtATime: options.answerBytesAtATime ?? Number.POSITIVE_INFINITY,
  })
  return {
    models,
    providers: {
      directory,
      settings,
      egress,
      now,
      trying: { directory, settings, models, fetch, newId, monotonic },
    },
    secrets: secretStore({ db, sealing, now, redact }),
  }
}

/** Calls to the router's own address go to the function; a router that a tenant stored itself is called like any provider. */
function toRouter(
  routerFetch: (request: Request) => Promise<Response>,
  fetch: EgressClient['fetch'],
): EgressClient['fetch'] {
  return (url, { method = 'GET', headers, body, signal, redirects }) => {
    if (url.origin !== IN_PROCESS) return fetch(url, { method, signal, headers, body, redirects })
    const init = { method, signal, ...(headers && { headers: { ...headers } }), ...(body !== undefined && { body }) }
    return routerFetch(new Request(url, init))
  }
}
