import type { DialectName } from './candidate.ts'
import { jsonBytes } from './json-text.ts'
import type { JsonObject } from './json-value.ts'
import { sseFrame } from './sse-frame.ts'

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

/** In a stream the Responses API has the members of its errors beside the type of the event. The router counts no events of an upstream. */
function responsesError({ message, chatType, chatCode, param }: OutError): JsonObject {
  return { type: 'error', code: chatCode ?? chatType, message, param: param ?? null, sequence_number: 0 }
}

/** The body of an HTTP error. */
export function errorBody(dialect: DialectName, error: OutError): Uint8Array {
  return jsonBytes(dialect === 'messages' ? messagesError(error) : chatError(error))
}

/** The last frame of a stream that fails after its head has gone out; nothing may follow it. */
export function errorEvent(dialect: DialectName, error: OutError): Uint8Array {
  if (dialect === 'messages') return sseFrame('error', messagesError(error))
  return dialect === 'chat' ? sseFrame(undefined, chatError(error)) : sseFrame('error', responsesError(error))
}
