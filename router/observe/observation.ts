import type { Clock } from '../../shared/time/clock.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type AnswerMeter, answerMeter } from './answer-meter.ts'
import { apis, type EndedCall, MAX_ERROR_BODY, whole } from './ended-call.ts'
import type { ObservedEnd } from './record.ts'
import type { Target, TracedApi } from './target.ts'

/**
 * Answers up to this are kept and read after the call; longer ones are metered on their way. Most answers are shorter, and
 * a chunk that is only kept costs its call nothing.
 */
const MAX_KEPT = 64 * 1024

export interface Arrival {
  traceId: string
  tenantId: string
  routeIx: number | null
  target: Target & { api: TracedApi }
  headers: HeaderList
}

/** What is kept of one passing call until its record can be made: references to the chunks of the request and of a short answer. */
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
  call(): EndedCall
}

interface Answer {
  status: number
  headers: HeaderList
  encoded: boolean
  chunks: Uint8Array[]
  bytes: number
  /** Once the answer is longer than what is kept. */
  meter: AnswerMeter | undefined
}

export function observation({ traceId, tenantId, routeIx, target, headers }: Arrival, clock: Clock): Observation {
  const arrivedAt = clock.now()
  const start = clock.monotonic()
  const since = () => clock.monotonic() - start
  const request: Uint8Array[] = []
  let answer: Answer | undefined
  let end: ObservedEnd = 'client_abort'
  let called: number | undefined
  let firstByte: number | undefined
  let lastByte: number | undefined

  function meterOf({ headers, encoded, chunks }: Answer): AnswerMeter {
    const meter = answerMeter(apis[target.api].dialect, headers, encoded)
    for (const chunk of chunks) meter.push(chunk)
    return meter
  }

  function contentOf({ encoded, chunks, meter }: Answer) {
    return meter ? { meter, errorBody: whole(chunks) } : { raw: whole(chunks), encoded }
  }

  return {
    traceId,
    requestChunk: chunk => void request.push(chunk),
    called() {
      called ??= since()
    },
    head(status, headers, encoded) {
      answer = { status, headers, encoded, chunks: [], bytes: 0, meter: undefined }
    },
    chunk(chunk) {
      firstByte ??= since()
      if (answer === undefined) return
      const before = answer.bytes
      answer.bytes += chunk.length
      if (answer.bytes > MAX_KEPT) {
        if (answer.meter === undefined) {
          answer.meter = meterOf(answer)
          // Of an error the beginning is kept beside the meter.
          if (answer.status < 400) answer.chunks = []
        }
        answer.meter.push(chunk)
        if (answer.status < 400 || before >= MAX_ERROR_BODY) return
      }
      answer.chunks.push(chunk)
    },
    ended(how) {
      end = how
      lastByte = since()
    },
    call() {
      const last = lastByte ?? since()
      return {
        traceId,
        tenantId,
        routeIx,
        arrivedAt,
        headers,
        end,
        api: target.api,
        request,
        answer: answer && { status: answer.status, headers: answer.headers, content: contentOf(answer) },
        sent: called !== undefined,
        times: { called: called ?? last, firstByte, lastByte: last, done: last },
      }
    },
  }
}
