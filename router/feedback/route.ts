import { ApiError } from '../../shared/http/api-error.ts'
import { auditEndpoints as endpoints } from '../../shared/wire/router/endpoints/audit.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { SubmitFeedback } from './submit-feedback.ts'

export interface FeedbackDeps {
  /** Undefined where no traces are kept. */
  submit: SubmitFeedback | undefined
}

/** `POST /v1/feedback`. A caller reports on its own tenant's traces; another tenant's id is not there. */
export function feedbackOperations({ submit }: FeedbackDeps): Operation[] {
  return [
    operation(endpoints.feedback, ({ body, context }) => {
      if (submit === undefined) {
        throw new ApiError('not_found', 'this router keeps no traces: it was started without a store')
      }
      return submit(body, context.get('caller').sees)
    }),
  ]
}
