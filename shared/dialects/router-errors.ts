import { joined } from '../sign/bytes.ts'
import { errorStatusOf, type RouterErrorCase, retryHeaders, routerErrors } from '../wire/router/error-cases.ts'
import type { DialectName } from './candidate.ts'
import { jsonBytes } from './json-text.ts'
import type { JsonObject } from './json-value.ts'
import { sseFrame } from './sse-frame.ts'

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
  return {
    status: errorStatusOf(kind, dialect === 'messages'),
    headers,
    body: errorBody(dialect, outError(kind, message, requestId)),
  }
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

/** An error in the form of either dialect. */
export interface OutError {
  readonly message: string
  /** The messages dialect's type. */
  readonly messagesType: string
  /** The chat dialect's type and code. */
  readonly chatType: string
  readonly chatCode: string | null
  readonly param?: string | null
  /** Goes into `request_id` of a messages error. */
  readonly requestId: string
}

function messagesError({ message, messagesType, requestId }: OutError): JsonObject {
  return { type: 'error', error: { type: messagesType, message }, request_id: requestId }
}

function chatError({ message, chatType, chatCode, param }: OutError): JsonObject {
  return { error: { message, type: chatType, param: param ?? null, code: chatCode } }
}

/**
 * The event of an error in a stream of the Responses API. Its members stand in it, as the vendor documents, and in its `error`, where the
 * vendor has them and most clients read them. The router counts no events of an upstream.
 */
function responsesError({ message, chatType, chatCode, param }: OutError): JsonObject {
  const said = { code: chatCode ?? chatType, message, param: param ?? null }
  return { type: 'error', ...said, error: { type: chatType, ...said }, sequence_number: 0 }
}

/** The end of the response behind it: Codex reads no other, and asks again for what has no end. */
function failedResponse({ message, chatType, chatCode, requestId }: OutError): JsonObject {
  const code = chatCode === 'context_length_exceeded' ? chatCode : (FAILURES[chatType] ?? 'server_error')
  const id = `resp_${requestId.replaceAll('-', '')}`
  const response = { id, object: 'response', status: 'failed', error: { code, message }, output: [] }
  return { type: 'response.failed', response, sequence_number: 1 }
}

/** Codes by which a response fails, for the types of errors that have one. */
const FAILURES: Readonly<Record<string, string>> = {
  insufficient_quota: 'insufficient_quota',
  invalid_request_error: 'invalid_prompt',
  rate_limit_error: 'rate_limit_exceeded',
}

/** The body of an HTTP error. */
export function errorBody(dialect: DialectName, error: OutError): Uint8Array {
  return jsonBytes(dialect === 'messages' ? messagesError(error) : chatError(error))
}

/** The last frames of a stream that fails after its head has gone out; nothing may follow them. */
export function errorEvent(dialect: DialectName, error: OutError): Uint8Array {
  if (dialect === 'messages') return sseFrame('error', messagesError(error))
  if (dialect === 'chat') return sseFrame(undefined, chatError(error))
  return joined([sseFrame('error', responsesError(error)), sseFrame('response.failed', failedResponse(error))])
}
