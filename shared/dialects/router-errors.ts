import { type RouterErrorCase, retryHeaders, routerErrors } from '../wire/router/error-cases.ts'
import type { DialectName } from './candidate.ts'
import type { OutError } from './error-out.ts'
import { errorBody, errorEvent } from './error-out.ts'

export interface HttpError {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

function outError(name: RouterErrorCase, message: string, requestId: string): OutError {
  const { messages, chat, code } = routerErrors[name]
  return { message, messagesType: messages, chatType: chat, chatCode: code, requestId }
}

/** The HTTP answer for an error of the router, in the client's dialect; `requestId` is the trace id. */
export function routerError(
  dialect: DialectName,
  kind: RouterErrorCase,
  message: string,
  requestId: string,
): HttpError {
  const headers: [string, string][] = [['content-type', 'application/json']]
  if (dialect === 'messages') headers.push(['request-id', requestId])
  headers.push(...Object.entries(retryHeaders(kind)))
  if (kind === 'overloaded') headers.push(['retry-after', '1'])
  return { status: routerErrors[kind].status, headers, body: errorBody(dialect, outError(kind, message, requestId)) }
}

/** The same error for a stream whose head has already gone out. */
export function routerErrorEvent(
  dialect: DialectName,
  kind: RouterErrorCase,
  message: string,
  requestId: string,
): Uint8Array {
  return errorEvent(dialect, outError(kind, message, requestId))
}
