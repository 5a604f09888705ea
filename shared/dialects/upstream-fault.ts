import type { DialectName, UpstreamError } from './candidate.ts'
import { errorOfBody } from './upstream-error.ts'

/** How an HTTP error of an upstream counts; the names are those of the receipt's `error_class`. */
export type FaultClass =
  | 'timeout'
  | 'rate_limited'
  | 'overloaded'
  | 'upstream_5xx'
  | 'upstream_4xx'
  | 'context_overflow'
  | 'auth'
  | 'bad_response'
  | 'thinking_mismatch'

export interface UpstreamFault {
  readonly class: FaultClass
  /** Another rung may be tried; false for what only the client can put right. */
  readonly failover: boolean
  readonly error: UpstreamError | null
}

const OVERFLOW_CODE = 'context_length_exceeded'
const OVERFLOW_TEXT =
  /prompt is too long|maximum context length|context window|context_length|too many tokens|input is too long|exceeds the (model'?s )?limit of \d+ tokens|exceeds the maximum number of tokens/i

/** Thinking that another model wrote, or that was changed on the way: what is refused is the history, not a setting. */
const THINKING_TEXT = /signature|thinking.{0,30}\bblocks?\b|\bblocks?\b.{0,30}thinking|expected .{0,3}thinking/i
const THINKING_SETTING = /budget_tokens|max_tokens|temperature|top_p|top_k|tool_choice/i

/** Statuses beside 5xx after which another rung is tried (docs/spec/router.md §4, step 7). */
const FAILOVER_4XX = new Set([408, 409, 425, 429, 498])

export function isContextOverflow(status: number, error: UpstreamError | null): boolean {
  if (error === null || (status !== 400 && status !== 413)) return false
  return error.code === OVERFLOW_CODE || OVERFLOW_TEXT.test(error.message)
}

export function isThinkingMismatch(status: number, error: UpstreamError | null): boolean {
  if (status !== 400 || error === null) return false
  return THINKING_TEXT.test(error.message) && !THINKING_SETTING.test(error.message)
}

/** Reads an error answer of an upstream. */
export function classifyFault(status: number, body: Uint8Array): UpstreamFault {
  return faultOf(status, errorOfBody(body))
}

/** Reads an error that came inside a stream, or an error object in an answer with status 200. */
export function classifyStreamError(dialect: DialectName, error: UpstreamError): UpstreamFault & { status: number } {
  const status = statusOfError(dialect, error)
  return { ...faultOf(status, error), status }
}

function faultOf(status: number, error: UpstreamError | null): UpstreamFault {
  if (isContextOverflow(status, error)) return { class: 'context_overflow', failover: false, error }
  if (isThinkingMismatch(status, error)) return { class: 'thinking_mismatch', failover: false, error }
  return { class: classOf(status), failover: status >= 500 || FAILOVER_4XX.has(status) || status < 400, error }
}

function classOf(status: number): FaultClass {
  if (status === 429) return 'rate_limited'
  // Groq says 498 where its flexible tier has no room.
  if (status === 529 || status === 498) return 'overloaded'
  // Of the account behind the key: some providers say 402 when it has no money left.
  if (status === 401 || status === 402 || status === 403) return 'auth'
  if (status === 408) return 'timeout'
  if (status >= 500) return 'upstream_5xx'
  // A redirect, or a success status without an answer in it.
  return status >= 400 ? 'upstream_4xx' : 'bad_response'
}

/** The status an error would have had over HTTP; what cannot be told counts as a fault of the upstream. */
function statusOfError(dialect: DialectName, { type, code }: UpstreamError): number {
  if (dialect === 'messages') return messagesErrorStatus(type) ?? 500
  const numeric = Number(code)
  if (Number.isInteger(numeric) && numeric >= 400 && numeric < 600) return numeric
  if (code === OVERFLOW_CODE || type === 'invalid_request_error') return 400
  if (code === 'rate_limit_exceeded' || type === 'rate_limit_error' || type === 'rate_limit_exceeded') return 429
  if (code === 'insufficient_quota' || type === 'insufficient_quota') return 429
  if (type === 'authentication_error') return 401
  return 500
}

/** Error types of the messages dialect by HTTP status, dialects 1.3. */
const MESSAGES_TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [500, 'api_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
])

/** Error types of the chat dialect by HTTP status. */
const CHAT_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'insufficient_quota'],
  [403, 'permission_error'],
  [408, 'timeout'],
  [429, 'rate_limit_error'],
  [504, 'timeout'],
])

export function messagesErrorType(status: number): string {
  return MESSAGES_TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

export function chatErrorType(status: number): string {
  return CHAT_TYPES.get(status) ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
}

/** The HTTP status an error type of the messages dialect stands for; undefined for a type that is not in the table. */
function messagesErrorStatus(type: string | null): number | undefined {
  // api_error and timeout_error have several; the first is the one the provider documents.
  if (type === 'timeout_error') return 504
  if (type === 'overloaded_error') return 529
  for (const [status, name] of MESSAGES_TYPES) if (name === type) return status
  return undefined
}
