import { z } from 'zod'
import { named } from '../named.ts'

interface Case {
  readonly status: number
  readonly messages: string
  readonly chat: string
  readonly code: string | null
  readonly elsewhere: string | null
}

/** Router contract §2.3, the closed table. `elsewhere: null` marks a case that only the dialect paths can meet. */
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
  gate_failed: {
    status: 422,
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
} as const satisfies Record<string, Case>

export type RouterErrorCase = keyof typeof routerErrors

export const messagesError = named(
  'MessagesError',
  z.object({
    type: z.literal('error'),
    error: z.object({ type: z.string(), message: z.string() }),
    request_id: z.string(),
  }),
)
export type MessagesError = z.infer<typeof messagesError>

export const chatError = named(
  'ChatError',
  z.object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.null(),
      code: z.string().nullable(),
    }),
  }),
)
export type ChatError = z.infer<typeof chatError>

export const routerError = named(
  'RouterError',
  z.object({ error: z.object({ type: z.string(), message: z.string() }) }),
)
export type RouterError = z.infer<typeof routerError>

export type ErrorDialect = 'messages' | 'chat' | 'elsewhere'

/** The body of a router-made error in the caller's dialect. */
export function errorBodyFor(
  dialect: ErrorDialect,
  name: RouterErrorCase,
  message: string,
  requestId: string,
): MessagesError | ChatError | RouterError {
  const found: Case = routerErrors[name]
  if (dialect === 'messages') return { type: 'error', error: { type: found.messages, message }, request_id: requestId }
  if (dialect === 'chat') return { error: { message, type: found.chat, param: null, code: found.code } }
  return { error: { type: found.elsewhere ?? found.messages, message } }
}
