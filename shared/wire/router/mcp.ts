import { z } from 'zod'
import { int, text } from '../bounds.ts'
import { routingMode } from './capabilities.ts'
import { verifyReport } from './checkpoint.ts'
import { mode, window } from './conventions.ts'
import { evals, gateStats } from './evals.ts'
import { explanation } from './explain.ts'
import { feedbackResult, outcomes, verdict } from './feedback.ts'
import { savings, savingsGroup } from './savings.ts'
import { traceSummary } from './trace.ts'
import { traceDetail } from './traces.ts'

const traceRef = z.strictObject({ trace_id: text(1, 512) })

const estimate = z.object({ value: z.number().nullable(), ci: z.tuple([z.number(), z.number()]).nullable() })

export const rehearsal = z.object({
  ips: estimate,
  snips: estimate,
  dr: estimate,
  /** Walking the new ladder over what was logged; only for a whole policy. */
  direct: estimate.optional(),
  ess: z.number(),
  coverage: z.number().min(0).max(1),
  n: z.int().min(0),
  warnings: z.array(z.string()),
})
export type Rehearsal = z.infer<typeof rehearsal>

export const rehearseInput = z
  .strictObject({
    policy_toml: text(1, 1_048_576).optional(),
    start_rung: int(0, 15).optional(),
    metric: z.enum(['cost', 'failure']).default('cost'),
  })
  .refine(({ policy_toml, start_rung }) => (policy_toml === undefined) !== (start_rung === undefined), {
    error: 'send policy_toml or start_rung, one of them',
  })

/**
 * Tool inputs must be one object in JSON Schema, so both feedback shapes are offered as optional members here and
 * the call is checked against the strict union before anything happens.
 */
export const submitFeedbackInput = z.strictObject({
  request_id: text(1, 128).optional(),
  outcome: z.enum(outcomes).optional(),
  trace_id: text(1, 128).optional(),
  gate_id: text(1, 128).optional(),
  verdict: verdict.optional(),
  reporter: text(1, 128).optional(),
  score: z.number().min(0).max(1).optional(),
})

/** docs/spec/router.md §8: the nine audit tools with what they take and what they answer. */
export const mcpTools = {
  list_traces: {
    description: 'Recent routing decisions, newest first.',
    input: z.strictObject({
      limit: int(1, 200).default(20),
      mode: mode.optional(),
      route: int(0).optional(),
      since: window.since,
    }),
    output: z.object({ traces: z.array(traceSummary) }),
    readOnly: true,
  },
  get_trace: {
    description: 'The full decision for one request, with the feedback it got.',
    input: traceRef,
    output: z.object({
      trace: z.union([traceDetail.options[0].shape.trace, traceDetail.options[1].shape.trace]),
      feedback: traceDetail.options[0].shape.feedback,
    }),
    readOnly: true,
  },
  get_savings: {
    description: 'Net savings against always using the top rung, gate cost included.',
    input: z.strictObject({ ...window, group: savingsGroup.optional() }),
    output: savings,
    readOnly: true,
  },
  get_evals: {
    description: 'Gate outcomes and served-failure figures.',
    input: z.strictObject(window),
    // Which gates are switched off right now only a running router knows; the store does not.
    output: evals.extend({ gates: z.array(gateStats.partial({ disabled: true })) }),
    readOnly: true,
  },
  explain_route: {
    description: 'Why a request was routed as it was.',
    input: traceRef,
    output: explanation,
    readOnly: true,
  },
  rehearse_policy: {
    description: 'What another start rung or another policy would have cost or failed, from the logged decisions.',
    input: rehearseInput,
    output: rehearsal,
    readOnly: true,
  },
  verify_receipts: {
    description: 'Re-derives the hash chain and reports its integrity.',
    input: z.strictObject({ limit: int(1).optional(), anchor: text(1, 65_536).optional() }),
    output: verifyReport,
    readOnly: true,
  },
  list_modes: {
    description: 'The routing modes with their resolved knobs.',
    input: z.strictObject({}),
    output: z.object({ modes: z.array(routingMode.extend({ description: z.string() })) }),
    readOnly: true,
  },
  submit_feedback: {
    description: 'Reports how an earlier answer turned out.',
    input: submitFeedbackInput,
    output: feedbackResult,
    readOnly: false,
  },
} as const

export type McpToolName = keyof typeof mcpTools
export type McpInput<N extends McpToolName> = z.output<(typeof mcpTools)[N]['input']>
export type McpOutput<N extends McpToolName> = z.infer<(typeof mcpTools)[N]['output']>
