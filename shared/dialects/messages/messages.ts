import type { Dialect } from '../dialect.ts'
import { routerError, routerErrorEvent } from '../router-errors.ts'
import { sseFrame } from '../sse-frame.ts'
import { finishKind } from '../stop-reasons.ts'
import { classifyFault, classifyStreamError } from '../upstream-fault.ts'
import { messagesAccumulator } from './accumulate.ts'
import { decodeMessages } from './decode.ts'
import { emitMessages } from './emit.ts'
import { messagesMeter, readMessagesBody } from './meter.ts'
import { scanMessages } from './parse.ts'

/** The dialect of `/v1/messages`. */
export const messages: Dialect = {
  name: 'messages',
  path: '/v1/messages',
  scan: scanMessages,
  meter: messagesMeter,
  readBody: readMessagesBody,
  accumulator: messagesAccumulator,
  decodeJson: decodeMessages,
  // A messages stream always carries its usage.
  emit: body => emitMessages(body),
  keepAlive: sseFrame('ping', { type: 'ping' }),
  isKeepAlive: ({ event, data }) => data === undefined || event === 'ping',
  routerError: (kind, message, requestId) => routerError('messages', kind, message, requestId),
  routerErrorEvent: (kind, message, requestId) => routerErrorEvent('messages', kind, message, requestId),
  classifyFault,
  classifyStreamError: error => classifyStreamError('messages', error),
  finishKind: finish => finishKind('messages', finish),
}
