import { z } from 'zod'
import { fromText, query } from '../aliases.ts'
import { count, int, num, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, tenantId, timestamp, traceId } from './conventions.ts'

const name = text(1, 128)
const score = num(0, 1).optional()

export const outcomes = ['correct', 'incorrect', 'unknown'] as const
export type ReportedOutcome = (typeof outcomes)[number]
export const verdicts = ['pass', 'fail', 'abstain'] as const
export const verdict = z.enum(verdicts)
export type Verdict = z.infer<typeof verdict>

const verdictOf: Record<ReportedOutcome, Verdict> = { correct: 'pass', incorrect: 'fail', unknown: 'abstain' }

export const outcomeShape = z.strictObject({
  request_id: name,
  outcome: z.enum(outcomes),
  gate_id: name.optional(),
  reporter: name.optional(),
  score,
})

export const verdictShape = z.strictObject({ trace_id: name, gate_id: name, verdict, reporter: name, score })

/** docs/spec/router.md §2.4: shape A or shape B, never a mixture. */
export const feedbackRequest = named('FeedbackRequest', z.union([outcomeShape, verdictShape]))
export type FeedbackRequest = z.infer<typeof feedbackRequest>

export interface Feedback {
  /** A trace id, or any other id that a caller may know the request by. */
  ref: string
  gate_id: string
  verdict: Verdict
  reporter: string
  score?: number
}

/** Both shapes say the same thing in the end. */
export function toFeedback(given: FeedbackRequest): Feedback {
  const scored = given.score === undefined ? {} : { score: given.score }
  return 'trace_id' in given
    ? { ref: given.trace_id, gate_id: given.gate_id, verdict: given.verdict, reporter: given.reporter, ...scored }
    : {
        ref: given.request_id,
        gate_id: given.gate_id ?? 'outcome',
        verdict: verdictOf[given.outcome],
        reporter: given.reporter ?? 'client',
        ...scored,
      }
}

/** docs/spec/router.md §1.4; its own chain per tenant. */
export const feedbackRecord = named(
  'FeedbackRecord',
  z.strictObject({
    v: z.literal(1),
    tenant_id: tenantId,
    seq: count,
    prev_hash: hex64,
    hash: hex64,
    feedback_id: traceId,
    trace_id: traceId,
    gate_id: name,
    reporter: name,
    verdict,
    score,
    ts: timestamp,
    supersedes: traceId.optional(),
  }),
)
export type FeedbackRecord = z.infer<typeof feedbackRecord>

export const feedbackListQuery = query({
  after: text(1, 512).optional(),
  limit: fromText(int(1, 500).default(50)),
})

/** Feedback in the order of its chains, for verification: each record as it is in the store, null where it is no JSON. */
export const feedbackList = named(
  'FeedbackList',
  z.object({
    feedback: z.array(z.object({ tenant_id: tenantId, record: feedbackRecord.nullable() })),
    next: z.string().nullable(),
  }),
)
export type FeedbackList = z.infer<typeof feedbackList>

export const feedbackResult = named(
  'FeedbackResult',
  z.object({
    status: z.enum(['recorded', 'updated', 'duplicate']),
    trace_id: z.string(),
    feedback_id: z.string(),
    gate_id: z.string(),
    verdict,
    /** Of the trace's route; null where no threshold is in use. */
    serve_threshold: z.number().nullable(),
  }),
)
export type FeedbackResult = z.infer<typeof feedbackResult>
