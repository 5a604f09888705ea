import { z } from 'zod'
import { freeForm, int, text } from '../../shared/wire/bounds.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { approvalStatus } from '../../shared/wire/runtime/approval.ts'
import { agentEndpoints } from '../../shared/wire/runtime/endpoints/agents.ts'
import { approvalEndpoints } from '../../shared/wire/runtime/endpoints/approvals.ts'
import { runEndpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import { runStatus } from '../../shared/wire/runtime/run.ts'

/** An operation of the API under a name that models read; scopes and checks are those of the operation. */
export interface RuntimeTool {
  endpoint: Endpoint
  description: string
  input: z.ZodObject
}

const page = {
  limit: int(1, 200).optional().describe('How many at most; 50 unless told'),
  cursor: text(1, 4096).optional().describe('The nextCursor of the page before'),
}
const runId = z.object({ id: text(1, 512).describe('The id of the run') })
const approvalId = { id: text(1, 512).describe('The id of the approval') }
const comment = text(0, 4000).optional().describe('Kept with the decision')

export const runtimeTools: Readonly<Record<string, RuntimeTool>> = {
  list_agents: {
    endpoint: agentEndpoints.list,
    description: 'Lists the agents, newest first.',
    input: z.object(page),
  },
  get_agent: {
    endpoint: agentEndpoints.get,
    description: 'Reads an agent with its manifest.',
    input: z.object({ name: text(1, 128).describe('The name of the agent') }),
  },
  start_run: {
    endpoint: runEndpoints.create,
    description: 'Starts a run of an agent and answers at once; get_run says how it goes.',
    input: z.object({
      agentName: text(1, 128).describe('The name of the agent'),
      input: freeForm.optional().describe('For a plain task: {"prompt": "…"}'),
      labels: z.record(z.string(), z.string()).optional(),
    }),
  },
  get_run: { endpoint: runEndpoints.get, description: 'Reads a run: its status, output, cost or error.', input: runId },
  list_runs: {
    endpoint: runEndpoints.list,
    description: 'Lists runs, newest first.',
    input: z.object({ agentName: text(1, 128).optional(), status: runStatus.optional(), ...page }),
  },
  list_steps: {
    endpoint: runEndpoints.steps,
    description: 'The steps of a run: model calls, tool calls, approvals.',
    input: runId,
  },
  cancel_run: {
    endpoint: runEndpoints.cancel,
    description: 'Cancels a run that has not ended.',
    input: runId.extend({ reason: text(0, 2000).optional() }),
  },
  list_approvals: {
    endpoint: approvalEndpoints.list,
    description: 'Lists what runs wait for a human to decide, and what was decided.',
    input: z.object({ status: approvalStatus.optional(), runId: text(1, 512).optional(), ...page }),
  },
  approve: {
    endpoint: approvalEndpoints.approve,
    description:
      'Approves what a run waits for. A question is answered with output; an uncertain step needs resolution.',
    input: z.object({
      ...approvalId,
      comment,
      resolution: z.enum(['retry', 'completed']).optional(),
      output: z.unknown().optional(),
    }),
  },
  reject: {
    endpoint: approvalEndpoints.reject,
    description: 'Rejects what a run waits for.',
    input: z.object({ ...approvalId, comment }),
  },
}
