import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import { translateAnswer } from '../../shared/dialects/translate/answer.ts'
import { translateError } from '../../shared/dialects/translate/error.ts'
import { toClient, UNBUFFERED } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { AnsweredCall, RefusedCall } from './call-upstream.ts'

/** An answer as the client gets it: one piece, or the frames of a stream. */
export interface RenderedAnswer {
  status: number
  headers: HeaderList
  pieces: readonly Uint8Array[]
}

export interface RenderOptions {
  dialect: DialectName
  stream: boolean
  includeUsage: boolean
  traceId: string
  now: Date
}

/** Belong to bytes that are not sent as they came. */
const BODY_HEADERS = new Set(['content-length', 'content-encoding', 'content-type', 'etag', 'content-md5'])

/**
 * The answer of an attempt in the client's dialect and form. On the same dialect the bytes are those of the upstream;
 * undefined when the answer holds what the client's dialect has no word for.
 */
export function renderAnswer(answered: AnsweredCall, options: RenderOptions): RenderedAnswer | undefined {
  const { dialect, stream, includeUsage } = options
  const own = dialects[dialect]
  let json = answered.json
  if (answered.candidate.dialect !== dialect) {
    const made = translateAnswer(answered.candidate, dialect, {
      traceId: options.traceId,
      created: Math.floor(options.now.getTime() / 1000),
      ...(answered.tokens && { tokens: answered.tokens }),
    })
    if (!made.ok) return undefined
    json = made.body
  } else if (stream && answered.frames) {
    return { status: answered.status, headers: headersFor(answered.headers, true), pieces: answered.frames }
  }
  return {
    status: answered.status,
    headers: headersFor(answered.headers, stream, json.length),
    pieces: stream ? own.emit(json, { includeUsage }) : [json],
  }
}

/** Whether the client's dialect has words for all that an answer holds. */
export function isExpressible(
  { candidate }: AnsweredCall,
  { inbound, traceId }: { inbound: { dialect: DialectName }; traceId: string },
): boolean {
  const { dialect } = inbound
  return candidate.dialect === dialect || translateAnswer(candidate, dialect, { traceId, created: 0 }).ok
}

/** An upstream's own refusal: as it came on the same dialect, else in the client's words with its status and message. */
export function renderRefusal(
  refused: RefusedCall,
  from: DialectName,
  { dialect, traceId }: RenderOptions,
): RenderedAnswer {
  if (from === dialect && refused.headers.length > 0 && !refused.foreign) {
    const kept = toClient(refused.headers, name => name !== 'content-length')
    kept.push(['content-length', String(refused.body.length)])
    return { status: refused.status, headers: kept, pieces: [refused.body] }
  }
  const { status, body } = translateError(dialect, { status: refused.status, body: refused.body, requestId: traceId })
  const headers = headersFor(refused.headers, false, body.length)
  if (dialect !== 'messages') return { status, headers, pieces: [body] }
  // What the SDKs of this dialect read as the id of a request, as the body has it.
  const others = headers.filter(([name]) => name.toLowerCase() !== 'request-id')
  return { status, headers: [...others, ['request-id', traceId]], pieces: [body] }
}

function headersFor(upstream: HeaderList, stream: boolean, length = 0): HeaderList {
  if (stream) return streamHeaders(upstream)
  return [...ownOf(upstream), ['content-type', 'application/json'], ['content-length', String(length)]]
}

/** The head of a stream, with the end-to-end headers of the upstream that it comes from. */
export function streamHeaders(upstream: HeaderList): HeaderList {
  return [
    ...ownOf(upstream).filter(([name]) => name.toLowerCase() !== 'cache-control'),
    ['content-type', 'text/event-stream; charset=utf-8'],
    ['cache-control', 'no-cache'],
    UNBUFFERED,
  ]
}

const ownOf = (upstream: HeaderList): HeaderList => toClient(upstream, name => !BODY_HEADERS.has(name))
