import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../shared/http/api-error.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { type ConnectorId, connectorIds, isCustom } from '../../shared/wire/runtime/catalog.ts'
import {
  type CatalogEntry,
  type ConnectorInstall,
  type ConnectorTest,
  MASKED,
} from '../../shared/wire/runtime/connector.ts'
import { type Sealing, vaultToStore } from '../vault/vault.ts'
import type { CallOptions, Target, VendorCalls } from './call.ts'
import { invalid, missingIn, readConfig } from './config.ts'
import type { Action, Connector, Credential } from './definition.ts'
import { fromCatalogue, toEntry } from './from-catalogue.ts'
import { aadOf, baseOfInstall, type Install } from './install.ts'
import { loadCatalogue } from './load-catalogue.ts'
import type { OAuthClients } from './oauth/clients.ts'
import { clientOf, type OpenedInstall, refresher } from './oauth/refresher.ts'
import type { TokenCalls } from './oauth/token-calls.ts'
import { type OtherHome, vendorAt } from './oauth/vendors.ts'
import { customs, madeConnector } from './openapi/customs.ts'
import type { ConnectorStore } from './store.ts'
import { VendorFailure } from './vendor-failure.ts'

export interface ConnectorServiceDeps {
  store: ConnectorStore
  calls: VendorCalls
  sealing: Sealing
  egress: Pick<EgressClient, 'problem'>
  clock: Clock
  newId: () => string
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
  tokens: TokenCalls
  clients: OAuthClients
  homes: Readonly<Partial<Record<string, OtherHome>>>
  wait: (ms: number, signal: AbortSignal) => Promise<void>
  log: Log
}

/** What a vendor granted to a person who went to its page. */
type Granted = Pick<Credential, 'values' | 'expiresMs'> & Pick<Install, 'baseUrl'>

export type ConnectorService = ReturnType<typeof connectorService>

/** Makes calls with credentials that are fresh, and keeps what they say about them. */
function freshCalls(deps: ConnectorServiceDeps, connectorOf: (install: Install) => Promise<Connector>) {
  const { store, clock, tokens, clients, homes, log } = deps
  const nowMs = () => clock.now().getTime()
  const failed = (error: unknown) => log.warn('what the vendor says of a credential could not be noted', { error })
  const refreshing = refresher<Install>({
    calls: tokens,
    clock,
    wait: deps.wait,
    open: install => credentialOf(deps, install),
    store: { ...store, now: ({ tenantId, connectorId }) => store.ofTenant(tenantId, connectorId) },
    meansOf({ install: { connectorId }, credential }) {
      const vendor = vendorAt(connectorId, homes[connectorId])
      const { refreshToken } = credential.values
      const client = vendor && clientOf(credential, vendor, clients)
      if (credential.method !== 'oauth2' || refreshToken === undefined || !vendor || !client) return undefined
      return { vendor, client, refreshToken }
    },
    seal: async (install, values) => sealCredential(deps, install, await connectorOf(install), values),
  })

  return async function called<T>(
    install: Install,
    effect: Action['effect'],
    make: (target: Target) => Promise<T>,
  ): Promise<T> {
    const connector = await connectorOf(install)
    if (install.missing.length > 0) throw notReady(connector, install.missing)
    function targetOf({ install: now, credential }: OpenedInstall): Target {
      // It may have been installed anew while its token was refreshed; a caller has looked at where it went before.
      if (now !== install && baseOfInstall(connector, now) !== baseOfInstall(connector, install)) {
        const message = `${install.connectorId} was installed for another address meanwhile, so nothing was sent`
        throw new ApiError('connector_not_ready', message)
      }
      return { installId: now.id, connector, credential, baseUrl: now.baseUrl }
    }
    const held = await refreshing.fresh({ install, credential: await credentialOf(deps, install) })
    try {
      const made = await make(targetOf(held))
      // What was done is not lost with the note about it, which the next call makes.
      if (held.install.status === 'expired') await store.mark(held.install, 'installed', nowMs()).catch(failed)
      return made
    } catch (error) {
      if (!(error instanceof VendorFailure) || !error.refused) throw error
      const isOnce = effect === 'once'
      const renewed = await refreshing
        .renewed(held)
        .catch((problem: unknown) => Promise.reject(isOnce ? error : problem))
      if (!renewed) await store.mark(held.install, 'expired', nowMs()).catch(failed)
      // Of several requests that change something, only the last may have been refused.
      if (!renewed || isOnce) throw error
      try {
        return await make(targetOf(renewed))
      } catch (again) {
        if (again instanceof VendorFailure && again.refused)
          await store.mark(renewed.install, 'expired', nowMs()).catch(failed)
        throw again
      }
    }
  }
}

/** Installs of connectors and calls with them, the same for a client of the API and for a run. */
export function connectorService(deps: ConnectorServiceDeps) {
  const { store, calls, clock, clients } = deps
  const nowMs = () => clock.now().getTime()
  const { connectorOf, compiledOf } = customs({ store })
  const called = freshCalls(deps, connectorOf)

  return {
    store,

    connectorOf,

    /** Installs a connector or replaces its credentials; the statements go into the same transaction. */
    async install(
      tenantId: string,
      given: ConnectorInstall,
      also: readonly InStatement[],
    ): Promise<{ install: Install; warnings: string[] }> {
      const { connectorId, config, displayName } = given
      const api = isCustom(connectorId) ? await compiledOf(tenantId, connectorId, given) : undefined
      const connector = isCustom(connectorId) ? await madeConnector(connectorId, api!) : await fromCatalogue(given)
      const { credential, baseUrl, missing, warnings } = readConfig(connector, config)
      if (api && baseUrl === undefined) {
        const path = 'openapi#/servers/0/url'
        const message = 'expected an http or https address; without one give config.baseUrl'
        if (api.server === undefined) throw invalid([{ path, message }])
        await checkAddress(deps, path, api.server)
      }
      const about = { baseUrl, missing, displayName: displayName?.toWellFormed() || connector.name }
      const own = api && isCustom(connectorId) ? [store.apiStatement(tenantId, connectorId, api)] : []
      return { install: await storeInstall(deps, tenantId, connector, credential, about, [...own, ...also]), warnings }
    },

    installGranted: (tenantId: string, connectorId: ConnectorId, granted: Granted) =>
      installGranted(deps, tenantId, connectorId, granted),

    uninstall: (install: Install) => uninstall(deps, install),

    /** Runs an action with arguments that were checked; rejects with a VendorFailure where the vendor does not do it. */
    async execute(
      install: Install,
      action: Action,
      args: Record<string, unknown>,
      options: CallOptions = {},
    ): Promise<Record<string, unknown>> {
      return called(install, action.effect, target => calls.execute(target, action, args, options))
    },

    /** The catalogue as clients see it, and behind it the connectors that are the tenant's own. */
    async catalogue(tenantId: string): Promise<CatalogEntry[]> {
      const known = await loadCatalogue()
      const own: Connector[] = []
      for (const install of await store.customs(tenantId)) own.push(await connectorOf(install))
      return [...connectorIds.map(id => known[id]), ...own].map(one => toEntry(one, clients))
    },

    /** Asks the vendor whether it takes the credentials. */
    async test(install: Install): Promise<ConnectorTest> {
      const before = clock.monotonic()
      const result = (success: boolean, message: string, account?: string): ConnectorTest => ({
        success,
        message,
        latencyMs: Math.max(0, Math.round(clock.monotonic() - before)),
        ...(account !== undefined && account !== '' && { account }),
      })
      let tested: ConnectorTest
      try {
        const account = await called(install, 'read', target => calls.probe(target))
        const { name } = await connectorOf(install)
        tested = result(true, `${name} takes these credentials`, account)
      } catch (error) {
        if (!(error instanceof VendorFailure) && !(error instanceof ApiError)) throw error
        tested = result(false, error.message)
      }
      await store.tested(install, tested.success, nowMs())
      return tested
    },
  }
}

/** Installs what a vendor granted to a person who went to its page. */
async function installGranted(
  deps: ConnectorServiceDeps,
  tenantId: string,
  connectorId: ConnectorId,
  { values, expiresMs, baseUrl }: Granted,
): Promise<Install> {
  const connector = (await loadCatalogue())[connectorId]
  for (const { name, shape } of connector.keys) {
    const value = values[name]
    if (value === undefined || !shape || shape[0].test(value)) continue
    throw new VendorFailure({ message: `${connector.name} gave no ${name} that is ${shape[1]}`, declined: true })
  }
  const before = await deps.store.ofTenant(tenantId, connectorId)
  const credential: Credential = { method: 'oauth2', values, ...(expiresMs !== undefined && { expiresMs }) }
  const missing = missingIn(connector, 'oauth2', new Set(Object.keys(values)))
  // An address of the install before is left behind: these tokens are the vendor's, and go to no other host.
  return storeInstall(
    deps,
    tenantId,
    connector,
    credential,
    { baseUrl, missing, displayName: before?.displayName ?? connector.name },
    [],
  )
}

/** Takes an install away, and gives what a vendor granted through a consent page back to it. */
async function uninstall(deps: ConnectorServiceDeps, install: Install): Promise<boolean> {
  const { connectorId, config } = install
  const vendor = vendorAt(connectorId, deps.homes[connectorId])
  const granted = vendor && config.grant !== undefined ? await credentialOf(deps, install) : undefined
  if (!(await deps.store.remove(install))) return false
  const client = vendor && granted && clientOf(granted, vendor, deps.clients)
  const { accessToken, refreshToken } = granted?.values ?? {}
  if (!vendor || !client || accessToken === undefined || (await sharesGrant(deps, install, vendor.client))) return true
  try {
    const told = await deps.tokens.revoke(vendor, client, { accessToken, refreshToken })
    if (!told) deps.log.warn('a vendor has not been told that its tokens are not needed any more', { connectorId })
  } catch (error) {
    deps.log.warn('a vendor could not be told that its tokens are not needed any more', { connectorId, error })
  }
  return true
}

/** Google ends all that a person has granted to a client at once, so tokens go back with the last install that came so. */
async function sharesGrant({ store, homes }: ConnectorServiceDeps, gone: Install, client: string): Promise<boolean> {
  for (const id of connectorIds) {
    if (id === gone.connectorId || vendorAt(id, homes[id])?.client !== client) continue
    if ((await store.ofTenant(gone.tenantId, id))?.config.grant !== undefined) return true
  }
  return false
}

async function checkAddress(deps: ConnectorServiceDeps, path: string, address: string): Promise<void> {
  const url = URL.parse(address)
  const wrong =
    url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')
      ? 'expected an http or https address'
      : url.search !== '' || url.hash !== ''
        ? 'expected an address without ? and #'
        : await deps.egress.problem(url)
  if (wrong !== undefined) throw invalid([{ path, message: wrong }])
}

async function credentialOf(deps: ConnectorServiceDeps, install: Install): Promise<Credential> {
  const vault = await deps.sealing()
  if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
  const secrets = readJson(await vault.open(install.sealed, aadOf(install))) as Record<string, string>
  for (const secret of Object.values(secrets)) deps.redact(secret)
  const { method, config, expiresMs } = install
  return { method, values: { ...config, ...secrets }, ...(expiresMs !== undefined && { expiresMs }) }
}

async function sealCredential(
  deps: ConnectorServiceDeps,
  { tenantId, connectorId }: Pick<Install, 'tenantId' | 'connectorId'>,
  { keys }: Connector,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const secrets = Object.fromEntries(keys.flatMap(({ name, secret }) => pick(values, name, secret === true)))
  for (const secret of Object.values(secrets)) deps.redact(secret)
  const vault = await vaultToStore(deps.sealing, 'a credential')
  return vault.seal(JSON.stringify(secrets), aadOf({ tenantId, connectorId }))
}

/** Puts a credential in the place of whatever the tenant had for this connector. */
async function storeInstall(
  deps: ConnectorServiceDeps,
  tenantId: string,
  connector: Connector,
  credential: Credential,
  { baseUrl, missing, displayName }: Pick<Install, 'baseUrl' | 'missing' | 'displayName'>,
  also: readonly InStatement[],
): Promise<Install> {
  if (baseUrl !== undefined) await checkAddress(deps, 'config.baseUrl', baseUrl)
  else if (missing.length === 0) await checkAddress(deps, 'config', connector.origin(credential))
  const secretKeys = new Set(connector.keys.flatMap(({ name, secret }) => (secret ? [name] : [])))
  const shown = Object.entries(credential.values).map(([name, value]) => [name, secretKeys.has(name) ? MASKED : value])
  const sealed = await sealCredential(deps, { tenantId, connectorId: connector.id }, connector, credential.values)
  return deps.store.install(
    {
      tenantId,
      connectorId: connector.id,
      id: deps.newId(),
      config: Object.fromEntries(shown),
      missing,
      baseUrl,
      displayName,
      sealed,
      method: credential.method,
      expiresMs: credential.expiresMs,
      updatedMs: deps.clock.now().getTime(),
    },
    also,
  )
}

function notReady({ id, name }: Connector, missing: readonly string[]): ApiError<'connector_not_ready'> {
  const lacks = `${id} is installed without ${missing.join(' and ')}`
  const message = `${lacks}: install it again with what ${name} gave you (POST /v1/connectors/install)`
  return new ApiError('connector_not_ready', message, { members: { missing } })
}

function pick(values: Readonly<Record<string, string>>, name: string, wanted: boolean): [string, string][] {
  const value = values[name]
  return wanted && value !== undefined ? [[name, value]] : []
}
