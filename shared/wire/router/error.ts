import { z } from 'zod'
import { named } from '../schema-names.ts'
import { type ErrorCase, type RouterErrorCase, routerErrors } from './error-cases.ts'

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
      param: z.string().nullable(),
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
  const found: ErrorCase = routerErrors[name]
  if (dialect === 'messages') return { type: 'error', error: { type: found.messages, message }, request_id: requestId }
  if (dialect === 'chat') return { error: { message, type: found.chat, param: null, code: found.code } }
  return { error: { type: found.elsewhere ?? found.messages, message } }
}
