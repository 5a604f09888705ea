import type { DialectName, UpstreamError } from '../candidate.ts'
import { errorBody, type OutError } from '../router-errors.ts'
import { errorOfBody } from '../upstream-error.ts'
import { chatErrorType, isContextOverflow, messagesErrorType } from '../upstream-fault.ts'

const CHAT_CODES: ReadonlyMap<number, string> = new Map([
  [413, 'request_too_large'],
  [429, 'rate_limit_exceeded'],
])

/** An HTTP error of an upstream for a client of the other dialect: status and message stay, the type follows the status. */
export function translateError(
  to: DialectName,
  error: { readonly status: number; readonly body: Uint8Array; readonly requestId: string },
): { status: number; body: Uint8Array } {
  const status = errorStatus(to, error.status)
  return { status, body: errorBody(to, outError(error.status, errorOfBody(error.body), error.requestId)) }
}

/** 529 is a status of the messages dialect only. */
export function errorStatus(to: DialectName, status: number): number {
  return to !== 'messages' && status === 529 ? 503 : status
}

/** An upstream's error in the words of both dialects; also for an error that came inside a stream. */
export function outError(status: number, error: UpstreamError | null, requestId: string): OutError {
  const overflow = isContextOverflow(status, error) ? 'context_length_exceeded' : null
  return {
    message: error?.message || `The upstream answered with status ${status}.`,
    messagesType: messagesErrorType(status),
    chatType: chatErrorType(status),
    chatCode: overflow ?? error?.code ?? CHAT_CODES.get(status) ?? null,
    param: error?.param ?? null,
    requestId,
  }
}
