import type { DialectName } from '../../shared/dialects/candidate.ts'
import type { MeterReading, PassingDialect } from '../../shared/dialects/dialect.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import { passthroughOf } from '../../shared/dialects/passthrough/passthrough.ts'
import { responses } from '../../shared/dialects/responses/responses.ts'
import { joined } from '../../shared/sign/bytes.ts'
import { type Hashing, passedRequestPart, type RequestPart, requestPart } from '../receipt/request-part.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type AnswerMeter, answerMeter } from './answer-meter.ts'
import type { ObservedCall, ObservedEnd } from './record.ts'
import type { Target, TracedApi } from './target.ts'

/** Error bodies are read to class the error; none is longer than this. */
export const MAX_ERROR_BODY = 64 * 1024

/** The answer as it came; `encoded` says whether the bytes are still in the encoding that the headers name. */
export interface RawAnswer {
  raw: Uint8Array
  encoded: boolean
}

/** An answer too long to be kept, which a meter read on its way. */
export interface MeteredAnswer {
  meter: Pick<AnswerMeter, 'reading'>
  errorBody: Uint8Array
}

/** A passing call that is over, with nothing worked out yet: the maker of its receipt does that, in this thread or in another. */
export interface EndedCall {
  traceId: string
  tenantId: string
  /** Index of the matched route; null without one. */
  routeIx: number | null
  arrivedAt: Date
  api: TracedApi
  /** Of a call to a path that is only passed on. */
  passed?: PassedPath | undefined
  headers: HeaderList
  /** The body in the pieces that it came in, or what the receipt says about it. */
  request: readonly Uint8Array[] | RequestPart
  /** Undefined when the upstream sent no head. */
  answer: { status: number; headers: HeaderList; content: RawAnswer | MeteredAnswer } | undefined
  end: ObservedEnd
  sent: boolean
  times: ObservedCall['times']
}

/** Where a call went that is only passed on. */
export interface PassedPath {
  vendor: Target['dialect']
  method: string
  path: string
}

/** How the calls of an API are read, whose prices they have, and which vendor they are taken to go to. */
interface Reader {
  dialect: PassingDialect
  name: DialectName
  provider: string
}

const readers: Readonly<Record<Exclude<TracedApi, 'passthrough'>, Reader>> = {
  messages: { dialect: dialects.messages, name: 'messages', provider: 'anthropic' },
  'messages.count_tokens': { dialect: dialects.messages, name: 'messages', provider: 'anthropic' },
  chat: { dialect: dialects.chat, name: 'chat', provider: 'openai' },
  responses: { dialect: responses, name: 'chat', provider: 'openai' },
}

const passedReaders: Readonly<Record<Target['dialect'], Reader>> = {
  messages: { dialect: passthroughOf('messages'), name: 'messages', provider: 'anthropic' },
  chat: { dialect: passthroughOf('chat'), name: 'chat', provider: 'openai' },
}

export function readerOf({ api, passed }: Pick<EndedCall, 'api' | 'passed'>): Reader {
  return api === 'passthrough' ? passedReaders[passed?.vendor ?? 'chat'] : readers[api]
}

export function isBody(request: EndedCall['request']): request is readonly Uint8Array[] {
  return Array.isArray(request)
}

/** One piece is the common case and is not copied. */
export function whole(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? pieces[0]! : joined(pieces)
}

/** What the receipt says about the request; the body is read only if it was not read before. */
export function requestOf(
  call: Pick<EndedCall, 'request' | 'api' | 'headers' | 'passed'>,
  hashing: Hashing,
): RequestPart {
  const { request, api, headers, passed } = call
  if (!isBody(request)) return request
  const body = whole(request)
  const scan = readerOf(call).dialect.scan(body)
  const inbound = { api, headers, body, facts: scan.ok ? scan.facts : undefined }
  return passed ? passedRequestPart({ ...passed, headers }, inbound, hashing) : requestPart(inbound, hashing)
}

/** What the answer said about itself; undefined when it could not be read. */
export function readingOf(call: EndedCall): ReturnType<AnswerMeter['reading']> {
  const { answer, passed } = call
  // Usage in what a client only looks at again was counted when it was made.
  if (answer === undefined || (passed && passed.method !== 'POST')) return undefined
  const { headers, content } = answer
  if ('meter' in content) return content.meter.reading()
  const meter = answerMeter(readerOf(call).dialect, headers, content.encoded)
  if (content.raw.length > 0) meter.push(content.raw)
  return meter.reading()
}

/** Reads body and answer: the expensive half of a receipt. At once where that can be: a promise for each call is a tenth of this half. */
export function readCall(call: EndedCall, hashing: Hashing): ObservedCall | Promise<ObservedCall> {
  const reading = readingOf(call)
  if (reading instanceof Promise) return reading.then(known => observedCall(call, known, hashing))
  return observedCall(call, reading, hashing)
}

function observedCall(call: EndedCall, reading: MeterReading | undefined, hashing: Hashing): ObservedCall {
  const { traceId, tenantId, routeIx, arrivedAt, api, headers, answer, end, sent, times } = call
  return {
    traceId,
    tenantId,
    routeIx,
    arrivedAt,
    api,
    end,
    sent,
    times,
    request: requestOf(call, hashing),
    clientRequestId: headerValue(headers, 'x-request-id'),
    provider: readerOf(call).provider,
    answer: answer && {
      status: answer.status,
      headers: answer.headers,
      reading,
      errorBody: 'raw' in answer.content ? answer.content.raw.subarray(0, MAX_ERROR_BODY) : answer.content.errorBody,
    },
  }
}
