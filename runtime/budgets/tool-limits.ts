import { StepFailure } from '../execution/failure.ts'
import type { DayOf } from './day.ts'
import type { BudgetStore } from './store.ts'

/** The call of an action in a run. */
export interface ToolCallPlace {
  runId: string
  agentId: string
  stepId: string
  /** `<connector>.<action>` */
  tool: string
}

/** Before the call is made; `signal`: where that has to be asked for elsewhere. */
export type UseTool = (place: ToolCallPlace, signal: AbortSignal) => Promise<void>

/** Applies `toolLimits` (docs/spec/runtime.md §12): a call beyond what the day allows fails, and the model gets that failure. */
export function toolLimits(deps: {
  store: Pick<BudgetStore, 'get' | 'useTool'>
  dayOf: DayOf
  now: () => Date
}): (place: ToolCallPlace) => Promise<void> {
  return async place => {
    const { agentId, tool } = place
    const budget = await deps.store.get(agentId)
    // A soft budget never stops anything.
    if (!budget?.hardFail || !Object.hasOwn(budget.toolLimits, tool)) return
    const limit = budget.toolLimits[tool]!
    const day = deps.dayOf(deps.now().getTime())
    if (await deps.store.useTool({ ...place, day }, limit)) return
    const times = limit === 1 ? 'once' : `${limit} times`
    throw new StepFailure(
      'tool_limit',
      `${tool} may be called ${times} a day by this agent, and was (budget toolLimits)`,
    )
  }
}
