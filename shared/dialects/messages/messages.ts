import { decoding, fail, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { Decoded } from '../candidate.ts'
import type { Dialect } from '../dialect.ts'
import { tryParseJson, tryParsePlain } from '../json-text.ts'
import { asArray, asObject, isArray, isObject, type Json } from '../json-value.ts'
import { routerError, routerErrorEvent } from '../router-errors.ts'
import { sseFrame } from '../sse-frame.ts'
import { finishKind } from '../stop-reasons.ts'
import { errorIn } from '../upstream-error.ts'
import { classifyFault, classifyStreamError } from '../upstream-fault.ts'
import { messagesAccumulator } from './accumulate.ts'
import { messagesCandidate } from './answer.ts'
import { emitMessages } from './emit.ts'
import { messagesMeter, readMessagesBody } from './meter.ts'
import { scanMessages } from './parse.ts'

const OTHER = /[^A-Za-z0-9_-]/g

/** Whether this dialect takes the id of a call. */
export const isCallId = (id: string): boolean => id !== '' && id.search(OTHER) < 0

/**
 * The ids of a conversation's calls as this dialect takes them, of any provider: of letters, digits, `_` and `-`, and none twice. Some
 * providers give one id to several calls; their results come in the order of the calls.
 */
export function callIds() {
  const used = new Set<string>()
  const open = new Map<string, string[]>()
  const last = new Map<string, string>()
  const times = new Map<string, number>()
  const plain = (id: string) => id.replace(OTHER, '_') || '_'

  return {
    ofCall(id: string): string {
      const name = plain(id)
      let own = name
      while (used.has(own)) {
        const n = (times.get(name) ?? 1) + 1
        times.set(name, n)
        own = `${name}_${n}`
      }
      used.add(own)
      open.set(id, [...(open.get(id) ?? []), own])
      last.set(id, own)
      return own
    },
    ofResult: (id: string): string => open.get(id)?.shift() ?? last.get(id) ?? plain(id),
  }
}

export type CallIds = ReturnType<typeof callIds>

/** The candidate in a messages answer that was not streamed; the body stays the bytes that came. */
function decodeMessages(body: Uint8Array): Decoded {
  return decoding(() => {
    if (body.length === 0) fail('empty', 'the body is empty')
    const plain = tryParsePlain(body)
    // The input of a tool call keeps the text that the model wrote.
    const message = callsTools(plain) ? tryParseJson(body, INPUT_LEVEL) : plain
    if (message === undefined) fail('not_json', 'the body is not JSON')
    const error = errorIn(message)
    if (error !== null) throw new Undecodable(upstreamFailed(error))
    if (!isObject(message) || !isArray(message.content)) fail('not_an_answer', 'the body has no content')
    const blocks = message.content.map(block => ({
      block: isObject(block) ? block : fail('bad_frame', 'a content block is not an object'),
    }))
    return { ok: true as const, candidate: messagesCandidate(message, blocks), body, replayable: false }
  })
}

/** The message, its content, a block, its input. */
const INPUT_LEVEL = 3

const callsTools = (message: Json | undefined): boolean =>
  asArray(asObject(message).content).some(block => asObject(block).type === 'tool_use')

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
