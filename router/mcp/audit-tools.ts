import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import { type FeedbackRequest, type FeedbackResult, feedbackRequest } from '../../shared/wire/router/feedback.ts'
import {
  type McpInput,
  type McpOutput,
  type McpToolName,
  mcpTools,
  type Rehearsal,
} from '../../shared/wire/router/mcp.ts'
import type { TraceRecord, TraceSummary } from '../../shared/wire/router/trace.ts'
import { explain } from '../audit/explain.ts'
import type { AuditReads, FoundTrace } from '../audit/reads.ts'
import type { ModeDescription } from '../policy/knobs.ts'
import { CursorError } from '../traces/store.ts'

export interface AuditDeps {
  /** The tenant whose traces these tools know. */
  tenant: string
  reads: Pick<AuditReads, 'list' | 'find' | 'savings' | 'evals'>
  /** Where the thresholds of the tenant's routes stand. */
  calibration: () => Promise<CalibrationState[]>
  verify: (input: McpInput<'verify_receipts'>) => Promise<McpOutput<'verify_receipts'>>
  modes: () => Promise<ModeDescription[]>
  submit: (report: FeedbackRequest) => Promise<FeedbackResult>
  rehearse: (input: McpInput<'rehearse_policy'>) => Promise<Rehearsal>
}

type AuditTools = { [N in McpToolName]: (input: McpInput<N>) => Promise<McpOutput<N>> }

/** What the nine tools of docs/spec/router.md §8 do. A refusal is an ApiError whose message the caller may read. */
export function auditTools({ tenant, reads, calibration, verify, modes, submit, rehearse }: AuditDeps): AuditTools {
  async function find(id: string): Promise<FoundTrace> {
    const found = await reads.find(id, tenant)
    if (found !== undefined) return found
    throw new ApiError('not_found', `there is no trace with the id ${id}`)
  }

  return {
    async list_traces(input) {
      const { traces } = await reads.list(input, tenant)
      return { traces: traces.map(toSummary) }
    },
    async get_trace({ trace_id }) {
      const { trace, feedback } = await find(trace_id)
      return { trace, feedback }
    },
    get_savings: input => reads.savings(input, tenant),
    async get_evals(input) {
      return { ...(await reads.evals(input, tenant)), calibration: await calibration() }
    },
    async explain_route({ trace_id }) {
      return explain((await find(trace_id)).trace)
    },
    rehearse_policy: rehearse,
    verify_receipts: verify,
    list_modes: async () => ({ modes: await modes() }),
    async submit_feedback(input) {
      const checked = check(feedbackRequest, input)
      if (checked.ok) return submit(checked.value)
      throw new ApiError('validation_failed', sentence(checked.details), { details: checked.details })
    },
  }
}

function toSummary({ trace_id, ts, mode, route_ix, request, attempts, final }: TraceRecord): TraceSummary {
  const { agent, requested_model } = request.features
  const { served_model, served_rung, served_from, status, total_cost_usd, savings_usd } = final
  return {
    trace_id,
    ts,
    mode,
    route_ix,
    agent,
    requested_model,
    served_model,
    served_rung,
    served_from,
    status,
    attempts: attempts.length,
    total_cost_usd,
    savings_usd,
  }
}

/** The answer to `tools/call`: what a tool found, as JSON and as the same JSON in text, or why it did not. */
export interface ToolResult {
  [key: string]: unknown
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/**
 * Calls a tool by its name. Input is checked by the tool's schema, so that a complaint is a sentence about a field; whatever fails is
 * an answer and never the end of the session.
 */
export async function callTool(tools: AuditTools, name: string, input: unknown, log: Log): Promise<ToolResult> {
  if (!Object.hasOwn(mcpTools, name)) return failure(`there is no tool with the name ${name}`)
  try {
    const found = await called(tools, name as McpToolName, input ?? {})
    return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found }
  } catch (error) {
    if (error instanceof ApiError || error instanceof CursorError) return failure(error.message)
    log.error('a tool failed', { tool: name, error })
    return failure('internal error: the log of this process says more')
  }
}

async function called<N extends McpToolName>(tools: AuditTools, name: N, input: unknown) {
  const checked = check(mcpTools[name].input, input)
  if (!checked.ok) throw new ApiError('validation_failed', sentence(checked.details), { details: checked.details })
  // The table gives each name its own input; that the two belong together is beyond what a type says of a computed name.
  const tool = tools[name] as (given: unknown) => Promise<Record<string, unknown>>
  return tool(checked.value)
}

function failure(message: string): ToolResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}
