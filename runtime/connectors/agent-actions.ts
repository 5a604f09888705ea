import { ApiError } from '../../shared/http/api-error.ts'
import { connectorRef } from '../../shared/wire/runtime/catalog.ts'
import type { UseTool } from '../budgets/tool-limits.ts'
import { StepFailure } from '../execution/failure.ts'
import type { ConnectorAction, ConnectorsOf } from '../execution/tools/connector-tool.ts'
import { ArgumentError } from './argument-error.ts'
import { asMeant, readArguments, schemaOf } from './arguments.ts'
import type { Action } from './definition.ts'
import { type ConnectorService, loadCatalogue } from './service.ts'
import { inWords, VendorFailure } from './vendor-failure.ts'

export interface AgentActionsDeps {
  service: Pick<ConnectorService, 'store' | 'execute'>
  useTool: UseTool
}

/** Connectors as the engine sees them. What is repeated after a failure is the engine's decision, so each call is one try. */
export function agentActions({ service, useTool }: AgentActionsDeps): ConnectorsOf {
  return async (run, entries) => {
    if (entries.length === 0) return []
    const catalogue = await loadCatalogue()
    const wanted = new Map<string, ConnectorAction>()
    for (const entry of entries) {
      const ref = connectorRef(entry)
      if (!ref) continue
      const { connectorId } = ref
      for (const [name, action] of Object.entries(catalogue[connectorId].actions)) {
        if (ref.action !== undefined && ref.action !== name) continue
        const tool = `${connectorId}.${name}`
        wanted.set(tool, {
          ...{ connectorId, name, effect: action.effect, parameters: schemaOf(action) },
          about: `${catalogue[connectorId].name}: ${action.about}`,
          asMeant: given => asMeant(action, given),
          async call(given, { stepId }, { key, signal }) {
            const args = argumentsOf(action, given)
            const install = await service.store.ofTenant(run.tenantId, connectorId)
            if (!install) throw new StepFailure('connector_not_ready', `the connector ${connectorId} is not installed`)
            await useTool({ runId: run.id, agentId: run.agentId, stepId, tool })
            try {
              return await service.execute(install, action, args, { key, signal, tries: 1 })
            } catch (error) {
              throw toStepFailure(error, tool, action)
            }
          },
        })
      }
    }
    return [...wanted.values()]
  }
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
