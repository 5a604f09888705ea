import { ApiError } from '../../shared/http/api-error.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import { type FeedbackRequest, type FeedbackResult, feedbackRequest } from '../../shared/wire/router/feedback.ts'
import type { McpInput, McpOutput, McpToolName, Rehearsal } from '../../shared/wire/router/mcp.ts'
import type { TraceRecord, TraceSummary } from '../../shared/wire/router/trace.ts'
import { explain } from '../audit/explain.ts'
import type { AuditReads, FoundTrace } from '../audit/reads.ts'
import type { ModeDescription } from '../policy/knobs.ts'

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

export type AuditTools = { [N in McpToolName]: (input: McpInput<N>) => Promise<McpOutput<N>> }

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
