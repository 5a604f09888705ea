import { ApiError } from '../../shared/http/api-error.ts'
import { type FeedbackRequest, type FeedbackResult, toFeedback } from '../../shared/wire/router/feedback.ts'
import type { SubmitFeedback } from '../feedback/submit-feedback.ts'

type ReportHere = (report: FeedbackRequest) => Promise<FeedbackResult | undefined>

/** Takes a report on a trace of one store; undefined where that has no such trace. */
export async function reportHere(submit: SubmitFeedback, report: FeedbackRequest): Promise<FeedbackResult | undefined> {
  try {
    return await submit(report, undefined)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return undefined
    throw error
  }
}

/** A caller who sees all tenants reports on a trace of any shard; others on those of their own. */
export function reportAnywhere(own: SubmitFeedback, elsewhere: ReportHere): SubmitFeedback {
  return async (report, tenant) => {
    if (tenant !== undefined) return own(report, tenant)
    const taken = (await reportHere(own, report)) ?? (await elsewhere(report))
    if (taken !== undefined) return taken
    throw new ApiError('not_found', `there is no trace with the id ${toFeedback(report).ref}`)
  }
}
