import { type CustomId, isConnector } from '../../../shared/wire/runtime/catalog.ts'
import type { ConnectorInstall } from '../../../shared/wire/runtime/connector.ts'
import { invalid } from '../config.ts'
import type { Connector } from '../definition.ts'
import type { Install } from '../install.ts'
import { loadCatalogue } from '../load-catalogue.ts'
import type { ConnectorStore } from '../store.ts'
import type { CompiledApi } from './compiled.ts'
import { DocumentProblem, readDocument } from './document.ts'

/** Connectors that are made from a row are made once for each change of it; this many are kept. */
const KEPT = 200

/** The connector of an API that was compiled from a document. */
export async function madeConnector(id: CustomId, api: CompiledApi): Promise<Connector> {
  return (await import('./custom-connector.ts')).customConnector(id, api)
}

/** Connectors by their installs: those of the catalogue, and those that a tenant has made from a document. */
export function customs({ store }: { store: Pick<ConnectorStore, 'api'> }) {
  const made = new Map<string, { revision: number; connector: Connector }>()

  return {
    async connectorOf({ id, revision, tenantId, connectorId }: Install): Promise<Connector> {
      if (isConnector(connectorId)) return (await loadCatalogue())[connectorId]
      const known = made.get(id)
      if (known?.revision === revision) return known.connector
      const api = await store.api(tenantId, connectorId)
      if (!api) throw new Error(`the install of ${connectorId} has lost its operations`)
      const connector = await madeConnector(connectorId, api)
      made.delete(id)
      made.set(id, { revision, connector })
      for (const [oldest] of made) {
        if (made.size <= KEPT) break
        made.delete(oldest)
      }
      return connector
    },

    /** What an install brings, or what stands there from the one before. */
    async compiledOf(
      tenantId: string,
      connectorId: CustomId,
      { openapi, operations, testOperation, rate }: ConnectorInstall,
    ): Promise<CompiledApi> {
      if (openapi === undefined) {
        const before = await store.api(tenantId, connectorId)
        if (before && operations === undefined && testOperation === undefined) return { ...before, ...ruleOf(rate) }
        const message = before
          ? 'Required: operations are chosen from the document, so it has to come with them'
          : 'Required: an OpenAPI 3.0 or 3.1 document'
        throw invalid([{ path: 'openapi', message }])
      }
      const { compile } = await import('./compile.ts')
      try {
        return { ...compile(await readDocument(openapi), operations, testOperation), ...ruleOf(rate) }
      } catch (error) {
        if (!(error instanceof DocumentProblem)) throw error
        const { place, message } = error
        throw invalid([
          {
            path: (place.startsWith('#') ? `openapi${place}` : place).slice(0, 500).toWellFormed(),
            message: message.slice(0, 500).toWellFormed(),
          },
        ])
      }
    },
  }
}

const ruleOf = (rate: ConnectorInstall['rate']): Pick<CompiledApi, 'rate'> =>
  rate === undefined
    ? {}
    : {
        rate: {
          concurrent: rate.concurrent,
          ...(rate.perSecond !== undefined && { perSecond: rate.perSecond }),
        },
      }
