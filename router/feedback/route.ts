import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { feedbackRequest } from '../../shared/wire/router/feedback.ts'
import type { CallerEnv } from '../auth/access.ts'
import { MAX_REPORT_BYTES, type SubmitFeedback } from './submit-feedback.ts'

export interface FeedbackDeps {
  /** Undefined where no traces are kept. */
  submit: SubmitFeedback | undefined
}

/** `POST /v1/feedback`. A caller reports on its own tenant's traces; another tenant's id is not there. */
export function feedbackRoute({ submit }: FeedbackDeps) {
  return new Hono<CallerEnv>().post('/v1/feedback', jsonBody(feedbackRequest, MAX_REPORT_BYTES), async c => {
    if (submit === undefined) {
      throw new ApiError('not_found', 'this router keeps no traces: it was started without a store')
    }
    return c.json(await submit(c.req.valid('json'), c.get('caller').sees), 202)
  })
}
