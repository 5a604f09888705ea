import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Outside } from '../../shared/http/outbound/outside.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { connectorIds, isConnector } from '../../shared/wire/runtime/catalog.ts'
import {
  type CatalogEntry,
  type ConnectorInstall,
  type ConnectorTest,
  MASKED,
} from '../../shared/wire/runtime/connector.ts'
import { notFound } from '../auth/own.ts'
import { type Sealing, vaultToStore } from '../vault/sealing.ts'
import { schemaOf } from './arguments.ts'
import type { CallOptions, Target, VendorCalls } from './call.ts'
import { invalid, readConfig } from './config.ts'
import type { Action, Connector, Credential } from './definition.ts'
import { type Install, placeOf } from './install.ts'
import type { ConnectorStore } from './store.ts'
import { VendorFailure } from './vendor-failure.ts'

export interface ConnectorServiceDeps {
  store: ConnectorStore
  calls: VendorCalls
  sealing: Sealing
  outside: Pick<Outside, 'problem'>
  clock: Clock
  newId: () => string
  /** Takes a secret out of every log line from now on. */
  conceal: (secret: string | undefined) => void
}

export type ConnectorService = ReturnType<typeof connectorService>

/** Installs of connectors and calls with them, the same for a client of the API and for a run. */
export function connectorService({ store, calls, sealing, outside, clock, newId, conceal }: ConnectorServiceDeps) {
  const nowMs = () => clock.now().getTime()

  async function checkAddress(path: string, address: string): Promise<void> {
    const url = URL.parse(address)
    const wrong =
      url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')
        ? 'expected an http or https address'
        : url.search !== '' || url.hash !== ''
          ? 'expected an address without ? and #'
          : await outside.problem(url)
    if (wrong !== undefined) throw invalid([{ path, message: wrong }])
  }

  async function credentialOf(install: Install): Promise<Credential> {
    const vault = await sealing()
    if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
    const secrets = JSON.parse(await vault.open(install.sealed, placeOf(install))) as Record<string, string>
    for (const secret of Object.values(secrets)) conceal(secret)
    const { method, config, expiresMs } = install
    return { method, values: { ...config, ...secrets }, ...(expiresMs !== undefined && { expiresMs }) }
  }

  /** An install that is about to be called. */
  async function targetOf(install: Install): Promise<Target> {
    const connector = (await loadCatalogue())[install.connectorId]
    if (install.missing.length > 0) throw notReady(connector, install.missing)
    return { installId: install.id, connector, credential: await credentialOf(install), baseUrl: install.baseUrl }
  }

  /** Makes a call, and keeps what it says about the credentials. */
  async function called<T>(install: Install, make: () => Promise<T>): Promise<T> {
    try {
      const made = await make()
      if (install.status === 'expired') await store.mark(install, 'installed', nowMs())
      return made
    } catch (error) {
      if (error instanceof VendorFailure && error.refused) await store.mark(install, 'expired', nowMs())
      throw error
    }
  }

  return {
    store,

    /** Installs a connector or replaces its credentials; the statements go into the same transaction. */
    async install(
      tenantId: string,
      { connectorId, config, displayName }: ConnectorInstall,
      also: readonly InStatement[],
    ): Promise<{ install: Install; warnings: string[] }> {
      if (!isConnector(connectorId)) {
        const known = `the catalogue has ${connectorIds.join(', ')}`
        throw new ApiError('not_found', `${notFound('connector', connectorId).message}; ${known}`)
      }
      const connector = (await loadCatalogue())[connectorId]
      const { credential, baseUrl, missing, warnings } = readConfig(connector, config)
      if (baseUrl !== undefined) await checkAddress('config.baseUrl', baseUrl)
      else if (missing.length === 0) await checkAddress('config', connector.origin(credential))
      const secretKeys = new Set(connector.keys.flatMap(({ name, secret }) => (secret ? [name] : [])))
      const secrets: Record<string, string> = {}
      const shown: Record<string, string> = {}
      for (const [name, value] of Object.entries(credential.values)) {
        shown[name] = secretKeys.has(name) ? MASKED : value
        if (secretKeys.has(name)) secrets[name] = value
      }
      for (const secret of Object.values(secrets)) conceal(secret)
      const vault = await vaultToStore(sealing, 'a credential')
      const install = await store.install(
        {
          ...{ tenantId, connectorId, id: newId(), config: shown, missing, baseUrl, method: credential.method },
          displayName: displayName?.toWellFormed() || connector.name,
          sealed: await vault.seal(JSON.stringify(secrets), placeOf({ tenantId, connectorId })),
          ...{ expiresMs: credential.expiresMs, updatedMs: nowMs() },
        },
        also,
      )
      return { install, warnings }
    },

    /** Runs an action with arguments that were checked; rejects with a VendorFailure where the vendor does not do it. */
    async execute(
      install: Install,
      action: Action,
      args: Record<string, unknown>,
      options: CallOptions = {},
    ): Promise<Record<string, unknown>> {
      const target = await targetOf(install)
      return called(install, () => calls.execute(target, action, args, options))
    },

    /** Asks the vendor whether it takes the credentials. */
    async test(install: Install): Promise<ConnectorTest> {
      const before = clock.monotonic()
      const result = (success: boolean, message: string, account?: string): ConnectorTest => ({
        ...{ success, message, latencyMs: Math.max(0, Math.round(clock.monotonic() - before)) },
        ...(account !== undefined && account !== '' && { account }),
      })
      let tested: ConnectorTest
      try {
        const target = await targetOf(install)
        const account = await called(install, () => calls.probe(target))
        tested = result(true, `${target.connector.name} takes these credentials`, account)
      } catch (error) {
        if (!(error instanceof VendorFailure) && !(error instanceof ApiError)) throw error
        tested = result(false, error.message)
      }
      await store.tested(install, tested.success, nowMs())
      return tested
    },
  }
}

/** Loaded at the first use: a service whose tenants use no connector does not pay for all of them. */
export async function loadCatalogue(): Promise<typeof import('./catalogue.ts')['catalogue']> {
  return (await import('./catalogue.ts')).catalogue
}

/** The catalogue as clients see it. */
export async function catalogueOnWire(): Promise<CatalogEntry[]> {
  const catalogue = await loadCatalogue()
  return connectorIds.map(id => {
    const { name, auth, keys, actions } = catalogue[id]
    return {
      ...{ connectorId: id, name, auth: auth.join(' or '), configKeys: keys.map(key => key.name) },
      actions: Object.entries(actions).map(([action, one]) => ({
        ...{ name: action, readOnly: one.effect === 'read', arguments: schemaOf(one) },
      })),
    }
  })
}

function notReady({ id, name }: Connector, missing: readonly string[]): ApiError<'connector_not_ready'> {
  const lacks = `${id} is installed without ${missing.join(' and ')}`
  const message = `${lacks}: install it again with what ${name} gave you (POST /v1/connectors/install)`
  return new ApiError('connector_not_ready', message, { members: { missing } })
}
