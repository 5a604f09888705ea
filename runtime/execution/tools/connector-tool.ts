import type { Effect } from '../../../shared/wire/runtime/tool.ts'
import { interruptedDefault } from '../../../shared/wire/runtime/tool.ts'
import type { Claimed } from '../lease-store.ts'
import type { CallPlace, ExposedTool } from './exposed-tool.ts'

/** An action of a connector, as much of it as a run needs. */
export interface ConnectorAction {
  connectorId: string
  name: string
  about: string
  /** JSON Schema. */
  parameters: Record<string, unknown>
  effect: Effect
  /** Where it goes, as a human is asked about it. */
  to?: string | undefined
  /** Arguments as they are meant: ids as texts or numbers, other spellings, null for absent. */
  coerceArguments(given: Record<string, unknown>): Record<string, unknown>
  /** Rejects with a StepFailure that says whether the same call may work a little later. */
  call(
    given: Record<string, unknown>,
    place: CallPlace,
    call: { key: string; signal: AbortSignal },
  ): Promise<Record<string, unknown>>
}

/** The actions that a manifest's `connectors` name, for one run. */
export type ConnectorsOf = (
  run: Pick<Claimed, 'id' | 'tenantId' | 'agentId'>,
  entries: readonly string[],
) => Promise<readonly ConnectorAction[]>

export function connectorTool(action: ConnectorAction): ExposedTool {
  const { connectorId, name, about, parameters, effect, to } = action
  return {
    name: `${connectorId}__${name}`,
    kind: 'connector',
    family: 'connectors',
    needsApproval: false,
    to,
    description: about,
    parameters,
    coerceArguments: action.coerceArguments,
    effect: () => effect,
    onInterrupted: () => interruptedDefault(effect),
    call: async (given, place, { key, signal }) => ({ output: await action.call(given, place, { key, signal }) }),
  }
}
