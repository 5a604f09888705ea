import type { IncomingMessage, ServerResponse } from 'node:http'
import { requestIdOf } from '../../shared/http/request-id.ts'
import { isJson, readBodyAs } from '../../shared/http/validate.ts'
import { errorBodyFor } from '../../shared/wire/router/error.ts'
import { retryHeaders, routerErrors } from '../../shared/wire/router/error-cases.ts'
import { feedbackRequest } from '../../shared/wire/router/feedback.ts'
import { isOwnPage } from '../auth/pages.ts'
import { refusalOf } from '../errors.ts'
import { MAX_REPORT_BYTES, type SubmitFeedback } from '../feedback/submit-feedback.ts'
import type { InboundDeps } from '../inbound/deps.ts'
import type { Relaying } from '../router.ts'
import { collect } from './exchange.ts'

export type DirectFeedbackDeps = Pick<Relaying, 'submit' | 'keyed' | 'reach'> &
  Pick<InboundDeps, 'tenantId' | 'maxBodyBytes' | 'log'>

const PATH = '/v1/feedback'

/**
 * Reports on Node's own objects, answered as the portable handlers answer them. Takes what needs no refusal at the door and leaves
 * the others, so that who may come in is decided in one place.
 */
export function directFeedback({ submit, keyed, reach, tenantId, maxBodyBytes, log }: DirectFeedbackDeps) {
  const most = Math.min(MAX_REPORT_BYTES, maxBodyBytes)

  async function answer(take: SubmitFeedback, body: Buffer, given: string, response: ServerResponse) {
    const id = requestIdOf(given)
    let status = 202
    let own: Readonly<Record<string, string>> | undefined
    let lasting: Readonly<Record<string, string>> = {}
    let told: object
    try {
      told = await take(readBodyAs(feedbackRequest, body), tenantId)
    } catch (error) {
      const { name, message, headers } = refusalOf(error, { method: 'POST', path: PATH, gone: response.destroyed }, log)
      status = routerErrors[name].status
      own = headers
      lasting = retryHeaders(name)
      told = errorBodyFor('elsewhere', name, message, id)
    }
    if (response.destroyed) return
    const text = JSON.stringify(told)
    response.writeHead(status, {
      'content-type': 'application/json',
      ...own,
      'x-request-id': id,
      ...lasting,
      'content-length': Buffer.byteLength(text),
    })
    response.end(text)
  }

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    if (request.url !== PATH || request.method !== 'POST' || submit === undefined || keyed) return false
    const { host, origin, 'content-type': type, 'content-length': length } = request.headers
    if (host === undefined || (reach === 'loopback' && !isOwnPage(host, origin))) return false
    if (length === undefined || Number(length) > most || !isJson(type)) return false
    collect(request, body => void answer(submit, body, String(request.headers['x-request-id'] ?? ''), response))
    return true
  }
}
