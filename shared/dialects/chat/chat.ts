import { decoding, fail, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { Decoded } from '../candidate.ts'
import type { Dialect } from '../dialect.ts'
import { tryParsePlain } from '../json-text.ts'
import { isArray, isObject } from '../json-value.ts'
import { routerError, routerErrorEvent } from '../router-errors.ts'
import { finishKind } from '../stop-reasons.ts'
import { errorIn } from '../upstream-error.ts'
import { classifyFault, classifyStreamError } from '../upstream-fault.ts'
import { chatAccumulator } from './accumulate.ts'
import { chatCandidate } from './answer.ts'
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

/** The candidate in a chat answer that was not streamed; the body stays the bytes that came. */
function decodeChat(body: Uint8Array): Decoded {
  return decoding(() => {
    if (body.length === 0) fail('empty', 'the body is empty')
    const completion = tryParsePlain(body)
    if (completion === undefined) fail('not_json', 'the body is not JSON')
    const error = errorIn(completion)
    if (error !== null) throw new Undecodable(upstreamFailed(error))
    if (!isObject(completion) || !isArray(completion.choices)) fail('not_an_answer', 'the body has no choices')
    return { ok: true as const, candidate: chatCandidate(completion), body, replayable: false }
  })
}
