export interface ErrorCase {
  readonly status: number
  /** Of the messages dialect, where it is another one. */
  readonly messagesStatus?: number
  readonly messages: string
  readonly chat: string
  readonly code: string | null
  readonly elsewhere: string | null
}

/** docs/spec/router.md §2.3, the closed table. `elsewhere: null` marks a case that only the dialect paths can meet. */
export const routerErrors = {
  bad_request: {
    status: 400,
    messages: 'invalid_request_error',
    chat: 'invalid_request_error',
    code: 'router_bad_request',
    elsewhere: 'bad_request',
  },
  unauthorized: {
    status: 401,
    messages: 'authentication_error',
    chat: 'authentication_error',
    code: 'router_key',
    elsewhere: 'unauthorized',
  },
  budget: {
    status: 402,
    messages: 'billing_error',
    chat: 'insufficient_quota',
    code: 'router_budget',
    elsewhere: 'budget',
  },
  forbidden: {
    status: 403,
    messages: 'permission_error',
    chat: 'permission_error',
    code: 'router_scope',
    elsewhere: 'forbidden',
  },
  not_found: {
    status: 404,
    messages: 'not_found_error',
    chat: 'invalid_request_error',
    code: 'not_found',
    elsewhere: 'not_found',
  },
  method_not_allowed: {
    status: 405,
    messages: 'invalid_request_error',
    chat: 'invalid_request_error',
    code: 'method_not_allowed',
    elsewhere: 'method_not_allowed',
  },
  timeout_body: {
    status: 408,
    messages: 'timeout_error',
    chat: 'timeout',
    code: 'router_timeout',
    elsewhere: 'timeout',
  },
  too_large: {
    status: 413,
    messages: 'request_too_large',
    chat: 'invalid_request_error',
    code: 'request_too_large',
    elsewhere: 'too_large',
  },
  untranslatable: {
    status: 422,
    messages: 'invalid_request_error',
    chat: 'invalid_request_error',
    code: 'untranslatable',
    elsewhere: null,
  },
  // WebSocket: a client that has another way takes it at once.
  no_upgrade: {
    status: 426,
    messages: 'invalid_request_error',
    chat: 'invalid_request_error',
    code: 'no_upgrade',
    elsewhere: null,
  },
  // Repeats are paid for: Codex sends all but a 400 again, and Claude Code sends a 400 or 422 again without one beta after the other.
  gate_failed: {
    status: 400,
    messagesStatus: 424,
    messages: 'invalid_request_error',
    chat: 'invalid_request_error',
    code: 'gate_failed',
    elsewhere: null,
  },
  internal: {
    status: 500,
    messages: 'api_error',
    chat: 'server_error',
    code: 'router_internal',
    elsewhere: 'internal',
  },
  upstream: {
    status: 502,
    messages: 'api_error',
    chat: 'server_error',
    code: 'upstream_unreachable',
    elsewhere: 'upstream',
  },
  // A provider began its answer, and bills what it has made of it: sent again, the request is paid for again.
  broken_off: {
    status: 502,
    messages: 'api_error',
    chat: 'server_error',
    code: 'upstream_broke_off',
    elsewhere: null,
  },
  // No provider can be called for want of a key.
  no_credential: {
    status: 502,
    messages: 'api_error',
    chat: 'server_error',
    code: 'no_credential',
    elsewhere: null,
  },
  // The answer that was paid for cannot be put into the client's dialect.
  inexpressible: {
    status: 502,
    messages: 'api_error',
    chat: 'server_error',
    code: 'inexpressible',
    elsewhere: null,
  },
  overloaded: {
    status: 503,
    messages: 'overloaded_error',
    chat: 'server_error',
    code: 'router_overloaded',
    elsewhere: 'overloaded',
  },
  timeout_total: {
    status: 504,
    messages: 'timeout_error',
    chat: 'timeout',
    code: 'router_timeout',
    elsewhere: 'timeout',
  },
} as const satisfies Record<string, ErrorCase>

export type RouterErrorCase = keyof typeof routerErrors

/** The status of a refusal in the dialect of its caller. */
export function errorStatusOf(name: RouterErrorCase, isMessages: boolean): number {
  const { status, messagesStatus = status }: ErrorCase = routerErrors[name]
  return isMessages ? messagesStatus : status
}

/** What the same request meets again, however often it is sent, or pays for again. */
const LASTING: ReadonlySet<RouterErrorCase> = new Set([
  'bad_request',
  'unauthorized',
  'budget',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'too_large',
  'untranslatable',
  'gate_failed',
  'no_upgrade',
  'no_credential',
  'inexpressible',
  'broken_off',
])

export const SHOULD_RETRY = 'x-should-retry'

/** What keeps the official SDKs from sending again what would be refused, or paid for, again. */
export function retryHeaders(name: RouterErrorCase): Readonly<Record<string, string>> {
  return LASTING.has(name) ? { [SHOULD_RETRY]: 'false' } : {}
}
