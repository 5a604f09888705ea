import type { DialectName } from './candidate.ts'
import { chat } from './chat/chat.ts'
import type { Dialect } from './dialect.ts'
import { messages } from './messages/messages.ts'
import { responses } from './responses/responses.ts'

/** The dialects by name. */
export const dialects: Readonly<Record<DialectName, Dialect>> = { messages, chat, responses }
