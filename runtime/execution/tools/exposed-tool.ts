import type { EventMeta } from '../../../shared/wire/runtime/journal.ts'
import type { StepKind } from '../../../shared/wire/runtime/run.ts'
import type { Effect, OnInterrupted } from '../../../shared/wire/runtime/tool.ts'
import type { ModelTool } from '../models/model.ts'
import type { StepCall, StepResult } from '../step-spec.ts'

/** Where a call stands: `tool-3-1` is the first call of the third turn. */
export interface CallPlace {
  runId: string
  turn: number
  index: number
  stepId: string
  /** Whether this is where a human has agreed that the call goes; absent where none was asked about that. */
  goesTo?: (address: string) => boolean
}

/** One callable thing of a run, whatever is behind it: a built-in, a connector action, an MCP tool, another agent. */
export interface ExposedTool extends ModelTool {
  kind: StepKind
  /** Which words of a confidence gate cover it. */
  family: 'tools' | 'connectors' | 'mcp'
  effect: (given: Record<string, unknown>) => Effect
  onInterrupted: (given: Record<string, unknown>) => OnInterrupted
  needsApproval: boolean
  /** Where its call goes, as a human is asked about it. */
  to?: string | undefined
  timeoutMs?: number
  /** Reads what a model gave before it is held against the schema. */
  coerceArguments?: (given: Record<string, unknown>) => Record<string, unknown>
  /** Where a run is read again and not executed: whether the journal has this call, so that its arguments were taken. */
  wasTaken?: (place: string) => boolean
  /** Ids and deadlines that must be on record before the call, so that a repeat uses the same. */
  intent?: (given: Record<string, unknown>) => EventMeta
  call: (given: Record<string, unknown>, place: CallPlace, call: StepCall) => Promise<StepResult>
}
