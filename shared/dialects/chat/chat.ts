import type { Dialect } from '../dialect.ts'
import { routerError, routerErrorEvent } from '../router-errors.ts'
import { finishKind } from '../stop-reasons.ts'
import { classifyFault, classifyStreamError } from '../upstream-fault.ts'
import { chatAccumulator } from './accumulate.ts'
import { decodeChat } from './decode.ts'
import { emitChat } from './emit.ts'
import { chatMeter, readChatBody } from './meter.ts'
import { scanChat } from './parse.ts'

/** The dialect of `/v1/chat/completions`. */
export const chat: Dialect = {
  name: 'chat',
  path: '/v1/chat/completions',
  scan: scanChat,
  meter: chatMeter,
  readBody: readChatBody,
  accumulator: chatAccumulator,
  decodeJson: decodeChat,
  emit: emitChat,
  keepAlive: new TextEncoder().encode(': keep-alive\n\n'),
  isKeepAlive: ({ data }) => data === undefined,
  routerError: (kind, message, requestId) => routerError('chat', kind, message, requestId),
  routerErrorEvent: (kind, message, requestId) => routerErrorEvent('chat', kind, message, requestId),
  classifyFault,
  classifyStreamError: error => classifyStreamError('chat', error),
  finishKind: finish => finishKind('chat', finish),
}
