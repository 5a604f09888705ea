import { ApiError } from '../../shared/http/api-error.ts'
import { QueueClosedError, QueueFullError } from '../../shared/sql/group-commit.ts'
import { type FeedbackRequest, type FeedbackResult, toFeedback } from '../../shared/wire/router/feedback.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { calibratedThreshold } from '../calibrate/calibration.ts'
import type { CalibrationCache } from '../calibrate/calibration-cache.ts'
import type { RouteCache } from '../calibrate/route-cache.ts'
import type { Calibration } from '../config/routing-config.ts'
import type { FeedbackWriter } from './feedback-writer.ts'
import { type Subject, servedAnswer } from './settle.ts'

/** Both shapes with the longest of everything take less. */
export const MAX_REPORT_BYTES = 16_384

export interface SubmitDeps {
  /** By a trace id, a response id or a request id; without a tenant, of any. Waits for records that are being made. */
  find: (id: string, tenant: string | undefined) => Promise<UnsealedTrace | undefined>
  routes: RouteCache
  writer: FeedbackWriter
  book: CalibrationCache
  settings: () => Calibration
  now: () => Date
  newId: () => string
  counted: (result: FeedbackResult) => void
}

export type SubmitFeedback = ReturnType<typeof submitFeedback>

/**
 * Takes the outcome of an earlier answer, for HTTP, for the audit server and for a program that holds the router alike (router contract
 * §2.4). Resolves when it is in the store, with its effect on the threshold.
 */
export function submitFeedback(deps: SubmitDeps) {
  async function subjectOf(trace: UnsealedTrace): Promise<Subject> {
    const { tenant_id: tenantId, trace_id: traceId, session_id: sessionId, route_ix, policy, ts } = trace
    const answer = servedAnswer(trace)
    const route = answer && route_ix !== null ? await deps.routes.find(policy.config_hash, route_ix) : undefined
    return { tenantId, traceId, sessionId, answeredMs: Date.parse(ts), served: answer && route && { ...answer, route } }
  }

  /** `tenant` is the one whose traces the caller may know; undefined: of all. */
  return async (request: FeedbackRequest, tenant: string | undefined): Promise<FeedbackResult> => {
    const given = toFeedback(request)
    for (const name of ['ref', 'gate_id', 'reporter'] as const) {
      if (given[name].includes('\0')) throw new ApiError('bad_request', `${name} holds a NUL character`)
      // Half a character is stored as the sign that stands for one.
      given[name] = given[name].toWellFormed()
    }
    const trace = await deps.find(given.ref, tenant)
    if (trace === undefined) throw new ApiError('not_found', `there is no trace with the id ${given.ref}`)
    const subject = await subjectOf(trace)
    const taken = await append({ subject, given, feedbackId: deps.newId(), at: deps.now() })
    const result = { ...taken, serve_threshold: thresholdOf(subject) }
    deps.counted(result)
    return result
  }

  async function append(report: Parameters<FeedbackWriter['append']>[0]) {
    try {
      return await deps.writer.append(report)
    } catch (cause) {
      if (!(cause instanceof QueueFullError) && !(cause instanceof QueueClosedError)) throw cause
      const message = 'the store does not keep up with the feedback that comes in: send it again in a moment'
      throw new ApiError('overloaded', message, { cause, headers: { 'retry-after': '1' } })
    }
  }

  function thresholdOf({ tenantId, served }: Subject): number | null {
    if (served === undefined) return null
    const { fingerprint, serve_threshold } = served.route
    return serve_threshold ?? calibratedThreshold(deps.book.get(tenantId, fingerprint)?.kept, deps.settings())
  }
}

type SubmitIfFound = (report: FeedbackRequest) => Promise<FeedbackResult | undefined>

/** Takes a report on a trace of one store; undefined where that has no such trace. */
export async function submitIfFound(
  submit: SubmitFeedback,
  report: FeedbackRequest,
): Promise<FeedbackResult | undefined> {
  try {
    return await submit(report, undefined)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return undefined
    throw error
  }
}

/** A caller who sees all tenants reports on a trace of any shard; others on those of their own. */
export function submitToAnyShard(own: SubmitFeedback, elsewhere: SubmitIfFound): SubmitFeedback {
  return async (report, tenant) => {
    if (tenant !== undefined) return own(report, tenant)
    const taken = (await submitIfFound(own, report)) ?? (await elsewhere(report))
    if (taken !== undefined) return taken
    throw new ApiError('not_found', `there is no trace with the id ${toFeedback(report).ref}`)
  }
}
