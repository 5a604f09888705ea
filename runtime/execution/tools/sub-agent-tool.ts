import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import { RunFailure, StepFailure, Suspended } from '../failure.ts'
import type { ExposedTool } from './exposed-tool.ts'

export const MAX_DEPTH = 5

export interface ChildRuns {
  /** Makes the run under this id, or finds that it was made before. Undefined: there is no such agent. */
  start(child: { id: string; agentName: string; input: Record<string, unknown> }): Promise<'started' | 'unknown_agent'>
  /** `refused`: there is no run and there will be none. */
  look(id: string): Promise<{ status: string; output?: unknown; error?: { code: string; message: string } } | undefined>
  /** For the commit that ends their parent without a result: what is open of them has no caller any more. */
  abandoned(atMs: number): InStatement[]
}

export interface SubAgentDeps {
  depth: number
  children: ChildRuns
  newId: () => string
}

/** Another agent as a tool: a run of its own, under an id that is on record before the run exists. */
export function subAgentTool(
  { depth, children, newId }: SubAgentDeps,
  { name, description }: { name: string; description?: string | undefined },
): ExposedTool {
  return {
    name: `agent__${name}`,
    kind: 'subagent',
    family: 'tools',
    needsApproval: false,
    effect: () => 'idempotent',
    onInterrupted: () => 'retry',
    description: description ?? `Gives a task to the agent ${name} and waits for its result.`,
    parameters: {
      type: 'object',
      properties: { prompt: { type: 'string', minLength: 1 } },
      required: ['prompt'],
      additionalProperties: true,
    },
    intent: () => ({ childRunId: newId() }),
    async call(input, _place, { intent }) {
      if (depth >= MAX_DEPTH) throw new StepFailure('subagent_failed', `agents may be nested ${MAX_DEPTH} deep`)
      const id = String(intent.childRunId)
      let child = await children.look(id)
      if (!child) {
        const started = await children.start({ id, agentName: name, input }).catch(refusedByBudget)
        if (started === 'unknown_agent') throw new StepFailure('subagent_failed', `there is no agent called ${name}`)
        child = { status: 'queued' }
      }
      switch (child.status) {
        case 'succeeded':
          return { output: child.output ?? null }
        case 'failed':
          throw new StepFailure('subagent_failed', `${name} failed: ${child.error?.message ?? 'unknown'}`)
        case 'refused':
          throw new StepFailure(child.error?.code ?? 'subagent_failed', child.error?.message ?? 'it was refused')
        case 'cancelled':
          throw new RunFailure('subagent_failed', `the run of ${name} was cancelled`)
        default:
          throw new Suspended({ on: 'subagent', children: [id] })
      }
    },
  }
}

/** What an agent may not afford is reported to its caller, which may do without. */
function refusedByBudget(error: unknown): never {
  if (error instanceof ApiError) throw new StepFailure(error.code, error.message, { cause: error })
  throw error
}
