import { ApiError } from '../../shared/http/api-error.ts'
import { CUSTOM_SHAPE, connectorIds, isConnector } from '../../shared/wire/runtime/catalog.ts'
import type { CatalogEntry, ConnectorInstall } from '../../shared/wire/runtime/connector.ts'
import { notFound } from '../http/own-tenant.ts'
import { schemaOf } from './arguments.ts'
import { invalid } from './config.ts'
import type { Connector } from './definition.ts'
import { loadCatalogue } from './load-catalogue.ts'
import type { OAuthClients } from './oauth/clients.ts'
import { vendorAt } from './oauth/vendors.ts'

/** Of the catalogue, and without what only a connector of one's own has. */
export async function fromCatalogue({ connectorId, ...given }: ConnectorInstall): Promise<Connector> {
  if (!isConnector(connectorId)) {
    if (connectorId.startsWith('http-')) {
      throw invalid([{ path: 'connectorId', message: `expected ${CUSTOM_SHAPE}` }])
    }
    const known = `the catalogue has ${connectorIds.join(', ')}; http-<name> takes an OpenAPI document`
    throw new ApiError('not_found', `${notFound('connector', connectorId).message}; ${known}`)
  }
  const { openapi, operations, testOperation, rate } = given
  const [stray] =
    Object.entries({ openapi, operations, testOperation, rate }).find(([, value]) => value !== undefined) ?? []
  if (stray !== undefined) {
    const message = `${connectorId} is of the catalogue; a document is for a connector of your own, http-<name>`
    throw invalid([{ path: stray, message }])
  }
  return (await loadCatalogue())[connectorId]
}

/** A connector as clients see it. */
export function toEntry({ id, name, auth, keys, actions }: Connector, clients: OAuthClients): CatalogEntry {
  const vendor = isConnector(id) ? vendorAt(id, undefined) : undefined
  return {
    connectorId: id,
    name,
    auth: auth.join(' or '),
    configKeys: keys.map(key => key.name),
    ...(vendor && { oauth: { client: vendor.client, configured: clients.has(vendor.client) } }),
    actions: Object.entries(actions).map(([action, one]) => ({
      name: action,
      readOnly: one.effect === 'read',
      arguments: schemaOf(one),
    })),
  }
}
