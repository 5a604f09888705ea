import { dialects } from '../../shared/dialects/dialects.ts'
import { joined } from '../../shared/sign/bytes.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type AnswerMeter, answerMeter } from './answer-meter.ts'
import type { ObservedCall, ObservedEnd } from './record.ts'
import type { Target, TracedApi } from './target.ts'

/** Error bodies are read to class the error; none is longer than this. */
const MAX_ERROR_BODY = 64 * 1024

export interface Arrival {
  traceId: string
  tenantId: string
  routeIx: number | null
  target: Target & { api: TracedApi }
  headers: HeaderList
}

/**
 * What is kept of one passing call until its record can be made. It holds references to the chunks of the request, and
 * of the answer only what its meter needs.
 */
export interface Observation {
  readonly traceId: string
  requestChunk(chunk: Uint8Array): void
  /** The request is on its way to the upstream. */
  called(): void
  head(status: number, headers: HeaderList, rawEncoding: boolean): void
  /** A chunk of the answer that has already gone to the client. */
  chunk(chunk: Uint8Array): void
  /** The last byte of the upstream came, or the call ended otherwise. */
  ended(end: ObservedEnd): void
  /** Everything that the receipt is made from; ask after `ended`. */
  call(): Promise<ObservedCall>
}

export function observation({ traceId, tenantId, routeIx, target, headers }: Arrival, clock: Clock): Observation {
  const arrivedAt = clock.now()
  const start = clock.monotonic()
  const since = () => clock.monotonic() - start
  const request: Uint8Array[] = []
  const errorBody: Uint8Array[] = []
  let errorBytes = 0
  let answer: { status: number; headers: HeaderList; meter: AnswerMeter } | undefined
  let end: ObservedEnd = 'client_abort'
  let called: number | undefined
  let firstByte: number | undefined
  let lastByte: number | undefined

  return {
    traceId,
    requestChunk: chunk => void request.push(chunk),
    called() {
      called ??= since()
    },
    head(status, head, rawEncoding) {
      answer = { status, headers: head, meter: answerMeter(dialects[target.dialect], head, rawEncoding) }
    },
    chunk(chunk) {
      firstByte ??= since()
      answer?.meter.push(chunk)
      if (answer === undefined || answer.status < 400 || errorBytes >= MAX_ERROR_BODY) return
      errorBytes += chunk.length
      errorBody.push(chunk)
    },
    ended(how) {
      end = how
      lastByte = since()
    },
    async call() {
      const last = lastByte ?? since()
      const reading = await answer?.meter.reading()
      return {
        traceId,
        tenantId,
        routeIx,
        arrivedAt,
        inbound: { api: target.api, headers, body: whole(request) },
        provider: target.dialect === 'messages' ? 'anthropic' : 'openai',
        answer: answer && { status: answer.status, headers: answer.headers, reading, errorBody: whole(errorBody) },
        end,
        sent: called !== undefined,
        times: { called: called ?? last, firstByte, lastByte: last, done: last },
      }
    },
  }
}

/** One piece is the common case and is not copied. */
function whole(chunks: readonly Uint8Array[]): Uint8Array {
  return chunks.length === 1 ? chunks[0]! : joined(chunks)
}
