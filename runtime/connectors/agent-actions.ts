import { ApiError } from '../../shared/http/api-error.ts'
import { type AnyConnectorId, connectorRef, isConnector } from '../../shared/wire/runtime/catalog.ts'
import type { UseTool } from '../budgets/tool-limits.ts'
import { RunFailure, StepFailure } from '../execution/failure.ts'
import type { ConnectorAction, ConnectorsOf } from '../execution/tools/connector-tool.ts'
import { ArgumentError } from './argument-error.ts'
import { coerceArguments, readArguments, schemaOf } from './arguments.ts'
import type { Action, Connector } from './definition.ts'
import { baseOfInstall, type Install } from './install.ts'
import { loadCatalogue } from './load-catalogue.ts'
import type { ConnectorService } from './service.ts'
import { inWords, VendorFailure } from './vendor-failure.ts'

export interface AgentActionsDeps {
  service: Pick<ConnectorService, 'store' | 'execute' | 'connectorOf'>
  useTool: UseTool
}

/** Connectors as the engine sees them. What is repeated after a failure is the engine's decision, so each call is one try. */
export function agentActions({ service, useTool }: AgentActionsDeps): ConnectorsOf {
  /** Those of the catalogue are known before they are installed; what a tenant's own can do, its install alone knows. */
  async function shownTo(tenantId: string, { connectorId, action }: Ref) {
    const install = await service.store.ofTenant(tenantId, connectorId)
    if (!install && !isConnector(connectorId)) {
      throw new RunFailure('connector_failed', notInstalled(connectorId).message)
    }
    const connector = isConnector(connectorId)
      ? (await loadCatalogue())[connectorId]
      : await service.connectorOf(install!)
    const { name, actions } = connector
    const toOf = (one: string) =>
      install ? addressOf(connector, one, install) : `nowhere: ${connectorId} is not installed`
    if (action === undefined || Object.hasOwn(actions, action)) return { name, actions, toOf }
    const message = `${connectorId} has no action ${action}; it has ${Object.keys(actions).join(', ')}`
    throw new RunFailure('connector_failed', message)
  }

  return async (run, entries) => {
    if (entries.length === 0) return []
    const wanted = new Map<string, ConnectorAction>()
    for (const entry of entries) {
      const ref = connectorRef(entry)
      if (!ref) continue
      const { connectorId } = ref
      const { name: title, actions, toOf } = await shownTo(run.tenantId, ref)
      for (const [name, action] of Object.entries(actions)) {
        if (ref.action !== undefined && ref.action !== name) continue
        const tool = `${connectorId}.${name}`
        wanted.set(tool, {
          connectorId,
          name,
          effect: action.effect,
          to: toOf(name),
          parameters: schemaOf(action),
          about: `${title}: ${action.about}`,
          coerceArguments: given => coerceArguments(action, given),
          async call(given, { stepId, goesTo }, { key, signal }) {
            const install = await service.store.ofTenant(run.tenantId, connectorId)
            if (!install) throw notInstalled(connectorId)
            const connector = await service.connectorOf(install)
            const now = connector.actions[name]
            // What a model was shown, and a human has agreed to, is what is done.
            if (!now || now.effect !== action.effect) {
              throw new StepFailure(
                'connector_not_ready',
                `${tool} is not what it was when the run began: start a new run`,
              )
            }
            const address = addressOf(connector, name, install)
            if (goesTo?.(address) === false) {
              throw new StepFailure(
                'connector_not_ready',
                `${tool} was not called: it goes to ${address} now, and not where it went when a human was asked`,
              )
            }
            const args = argumentsOf(now, given)
            await useTool({ runId: run.id, agentId: run.agentId, stepId, tool }, signal)
            try {
              return await service.execute(install, now, args, { key, signal, tries: 1 })
            } catch (error) {
              throw toStepFailure(error, tool, now)
            }
          },
        })
      }
    }
    return [...wanted.values()]
  }
}

/** Where an action goes, as a human is asked about it; of a tenant's own with its method and path. */
function addressOf(connector: Connector, action: string, install: Install): string {
  const base = baseOfInstall(connector, install)
  const line = connector.lineOf?.(action)
  return line ? `${line[0]} ${base}${line[1]}` : base
}

type Ref = NonNullable<ReturnType<typeof connectorRef>>

function notInstalled(connectorId: AnyConnectorId): StepFailure {
  return new StepFailure(
    'connector_not_ready',
    `the connector ${connectorId} is not installed: install it, or publish the agent without it`,
  )
}

function argumentsOf(action: Action, given: Record<string, unknown>): Record<string, unknown> {
  try {
    return readArguments(action, given)
  } catch (error) {
    throw error instanceof ArgumentError ? badArguments(error) : error
  }
}

function badArguments(cause: ArgumentError): StepFailure {
  return new StepFailure('bad_arguments', cause.message, { cause })
}

function toStepFailure(error: unknown, tool: string, { effect }: Action): unknown {
  if (error instanceof ArgumentError) return badArguments(error)
  if (error instanceof ApiError) return new StepFailure(error.code, error.message, { cause: error })
  if (!(error instanceof VendorFailure)) return error
  const { later, unreachable, retryAfterMs } = error
  return new StepFailure('upstream_failed', `${tool}: ${inWords(error, effect)}`, {
    transient: effect !== 'once' && (later || unreachable),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: error,
  })
}
