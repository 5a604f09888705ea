import type { ServerResponse } from 'node:http'
import { requestIdOf } from '../../shared/http/request-id.ts'
import { errorBodyFor } from '../../shared/wire/router/error.ts'
import { retryHeaders, routerErrors } from '../../shared/wire/router/error-cases.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { Answer } from '../enforce/commit-response.ts'
import { type EnforceDeps, type EnforceInput, enforce } from '../enforce/enforce.ts'
import { refusalOf } from '../errors.ts'
import type { InboundDeps } from '../inbound/deps.ts'
import { headerValue } from '../upstream/headers.ts'
import type { Exchange } from './exchange.ts'

/** A cascade whose answer is written to the socket as it is. */
export async function directEnforce(input: EnforceInput, deps: EnforceDeps, response: ServerResponse): Promise<void> {
  const stop = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  const answer = await enforce(input, deps, stop)
  // There is no reader.
  if (response.destroyed) return
  response.writeHead(answer.status, answer.headers.flat())
  write(answer, response, error => deps.log.warn('an answer broke off on its way', { trace_id: input.traceId, error }))
}

function write(answer: Answer, response: ServerResponse, broken: (error: unknown) => void): void {
  if ('frames' in answer) {
    response.flushHeaders()
    response.once('close', () => {
      if (!response.writableFinished) answer.gone()
    })
    answer
      .frames(frame => void response.write(frame))
      .then(
        () => void response.end(),
        (error: unknown) => {
          broken(error)
          // Only a connection that is cut says that this is no end.
          response.destroy()
        },
      )
    return
  }
  const { pieces } = answer
  for (const piece of pieces.slice(0, -1)) response.write(piece)
  response.end(pieces.at(-1))
}

/** A refusal in the caller's dialect, as the portable handlers answer it. */
export function refuseDirect(
  error: unknown,
  { request, response, traceId, method, path, headers, to }: Exchange,
  { log, outHeaders }: Pick<InboundDeps, 'log' | 'outHeaders'>,
): void {
  const gone = response.destroyed
  const { name, message, headers: own = {} } = refusalOf(error, { method, path, gone }, log)
  if (gone) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const body = JSON.stringify(errorBodyFor(to.dialect, name, message, traceId))
  response.writeHead(routerErrors[name].status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(outHeaders && { [responseHeaders.traceId]: traceId }),
    'x-request-id': requestIdOf(headerValue(headers, 'x-request-id')),
    ...retryHeaders(name),
    ...own,
  })
  response.end(body)
  request.resume()
}
