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
export function messagesErrorStatus(type: string | null): number | undefined {
  // api_error and timeout_error have several; the first is the one the provider documents.
  if (type === 'timeout_error') return 504
  if (type === 'overloaded_error') return 529
  for (const [status, name] of MESSAGES_TYPES) if (name === type) return status
  return undefined
}
