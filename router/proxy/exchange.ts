import { requestIdOf } from '../../shared/http/request-id.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { errorBodyFor } from '../../shared/wire/router/error.ts'
import { retryHeaders, routerErrors } from '../../shared/wire/router/error-cases.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import { dialectOf, type Refusal } from '../errors.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** What one call holds: its request, as long as it may have to be sent again or its receipt is not made, and the answers that are read whole. */
export interface HeldBody {
  /** Whether so many bytes more would have room. */
  fits(bytes: number): boolean
  /** The same, and where they have it, or are kept `always`, they are counted. */
  add(bytes: number, always?: boolean): boolean
  /** Nothing is held any more, and what still comes is not counted. */
  free(): void
  /** Of what goes on when this call has its answer. */
  another(): HeldBody
  /** Whether all calls together take up more than half of the room. */
  readonly isScarce: boolean
}

/** One request to a provider path and the way back for its answer, as every host offers them. */
export interface Exchange {
  readonly method: string
  /** Path and query, as they came. */
  readonly target: string
  readonly headers: HeaderList
  /** The name that the request was sent to; undefined where it named none. */
  readonly host: string | undefined
  /** As the request announces it. */
  readonly contentLength: number | undefined
  /** Whether the head of the answer is out, so that nothing else can be answered any more. */
  readonly isStarted: boolean
  /** Whether the client left. */
  readonly isGone: boolean
  /** The whole body. Rejects when it is larger than the limit or has no room, and when the client leaves before its end. */
  readBody(maxBytes: number, held: Pick<HeldBody, 'add'>): Promise<Uint8Array<ArrayBuffer>>
  /** The body as it comes, read no faster than it is taken; null without one. */
  streamBody(): AsyncIterable<Uint8Array> | null
  /** An answer that is known whole. */
  answer(status: number, headers: HeaderList, pieces: readonly Uint8Array[]): void
  /** The head of an answer that follows in pieces. */
  head(status: number, headers: HeaderList): void
  /** False once the client has enough to read. */
  write(chunk: Uint8Array): boolean
  /** Calls each time that a client which had enough wants more. */
  onDrain(call: () => void): void
  end(last?: Uint8Array): void
  /** Resolves when the client has all of the answer, or left. */
  sent(): Promise<void>
  /** Breaks the answer off so that no client takes it for whole. */
  cut(error: unknown): void
  /** Calls when the client leaves before the answer has ended, or at once if it has left. */
  onGone(call: () => void): void
}

interface RefusedCall {
  path: string
  traceId: string
  /** Whether answers carry `x-router-*` headers. */
  outHeaders: boolean
  /** Once it was decided that the call is passed on as it is. */
  isObserved: boolean
}

/** Answers a refusal in the dialect of the path. */
export function answerRefusal(exchange: Exchange, { name, message, headers = {} }: Refusal, call: RefusedCall): void {
  const { path, traceId, outHeaders, isObserved } = call
  const dialect = dialectOf(path)
  const body = utf8(JSON.stringify(errorBodyFor(dialect, name, message, traceId)))
  const head: HeaderList = [
    ['content-type', 'application/json'],
    ['content-length', String(body.length)],
    ['x-request-id', requestIdOf(headerValue(exchange.headers, 'x-request-id'))],
  ]
  // What the SDKs of this dialect read as the id of a request.
  if (dialect === 'messages') head.push(['request-id', traceId])
  if (outHeaders) head.push([responseHeaders.traceId, traceId])
  if (outHeaders && isObserved) head.push([responseHeaders.mode, 'observe'])
  head.push(...Object.entries(retryHeaders(name)), ...Object.entries(headers))
  exchange.answer(routerErrors[name].status, head, [body])
}
