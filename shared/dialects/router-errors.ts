import type { DialectName } from './candidate.ts'
import type { OutError } from './error-out.ts'
import { errorBody, errorEvent } from './error-out.ts'

/** Errors that the router itself makes: status, messages type, chat type and code (contract 2.3). */
export const ROUTER_ERRORS = {
  bad_request: [400, 'invalid_request_error', 'invalid_request_error', 'router_bad_request'],
  unauthorized: [401, 'authentication_error', 'authentication_error', 'router_key'],
  budget: [402, 'billing_error', 'insufficient_quota', 'router_budget'],
  forbidden: [403, 'permission_error', 'permission_error', 'router_scope'],
  not_found: [404, 'not_found_error', 'invalid_request_error', 'not_found'],
  body_timeout: [408, 'timeout_error', 'timeout', 'router_timeout'],
  too_large: [413, 'request_too_large', 'invalid_request_error', 'request_too_large'],
  untranslatable: [422, 'invalid_request_error', 'invalid_request_error', 'untranslatable'],
  gate_failed: [422, 'invalid_request_error', 'invalid_request_error', 'gate_failed'],
  internal: [500, 'api_error', 'server_error', 'router_internal'],
  upstream: [502, 'api_error', 'server_error', 'upstream_unreachable'],
  overloaded: [503, 'overloaded_error', 'server_error', 'router_overloaded'],
  timeout: [504, 'timeout_error', 'timeout', 'router_timeout'],
} as const satisfies Record<string, readonly [number, string, string, string]>
export type RouterErrorKind = keyof typeof ROUTER_ERRORS

export interface HttpError {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

function outError(kind: RouterErrorKind, message: string, requestId: string): OutError {
  const [, messagesType, chatType, chatCode] = ROUTER_ERRORS[kind]
  return { message, messagesType, chatType, chatCode, requestId }
}

/** The HTTP answer for an error of the router, in the client's dialect; `requestId` is the trace id. */
export function routerError(
  dialect: DialectName,
  kind: RouterErrorKind,
  message: string,
  requestId: string,
): HttpError {
  const headers: [string, string][] = [['content-type', 'application/json']]
  if (dialect === 'messages') headers.push(['request-id', requestId])
  if (kind === 'overloaded') headers.push(['retry-after', '1'])
  return { status: ROUTER_ERRORS[kind][0], headers, body: errorBody(dialect, outError(kind, message, requestId)) }
}

/** The same error for a stream whose head has already gone out. */
export function routerErrorEvent(
  dialect: DialectName,
  kind: RouterErrorKind,
  message: string,
  requestId: string,
): Uint8Array {
  return errorEvent(dialect, outError(kind, message, requestId))
}
