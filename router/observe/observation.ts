import { toHex } from '../../shared/sign/bytes.ts'
import { type RunningSha256, runningSha256 } from '../../shared/sign/sha256.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { HeldBody } from '../proxy/exchange.ts'
import {
  type Hashing,
  hashStart,
  type RequestPart,
  type UnreadCall,
  unreadRequestPart,
} from '../receipt/request-part.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type AnswerMeter, answerMeter } from './answer-meter.ts'
import { type EndedCall, MAX_ERROR_BODY, type PassedPath, readerOf, requestOf, whole } from './ended-call.ts'
import type { ObservedEnd } from './record.ts'
import type { TracedApi } from './target.ts'

/**
 * Answers up to this are kept and read after the call; longer ones are metered on their way. Most answers are shorter, and
 * a chunk that is only kept costs its call nothing.
 */
const MAX_KEPT = 64 * 1024

/** A body that is only passed on may be a file; one longer than this is hashed on its way and not kept. */
const MAX_KEPT_BODY = 1024 * 1024

export interface Arrival {
  traceId: string
  tenantId: string
  routeIx: number | null
  api: TracedApi
  /** Of a call to a path that is only passed on. */
  passed?: PassedPath | undefined
  headers: HeaderList
}

/** What is kept of one passing call until its record can be made: references to the chunks of the request and of a short answer. */
export interface Observation {
  readonly traceId: string
  /** All of the request in one piece, for which there is room. */
  requestBody(body: Uint8Array): void
  /** A piece of a request that passes in pieces. */
  requestChunk(chunk: Uint8Array): void
  /** That was the last one. */
  requestEnd(): void
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

export function observation(
  arrival: Arrival,
  held: HeldBody,
  { clock, hashing }: { clock: Clock; hashing: Hashing },
): Observation {
  const { traceId, tenantId, routeIx, api, passed, headers } = arrival
  const arrivedAt = clock.now()
  const start = clock.monotonic()
  const since = () => clock.monotonic() - start
  let request: Uint8Array[] = []
  let requestBytes = 0
  let read: RequestPart | undefined
  let long: ReturnType<typeof longBody> | undefined
  let answer: Answer | undefined
  let end: ObservedEnd = 'client_abort'
  let called: number | undefined
  let firstByte: number | undefined
  let lastByte: number | undefined

  function meterOf({ headers, encoded, chunks }: Answer): AnswerMeter {
    const meter = answerMeter(readerOf(arrival).dialect, headers, encoded)
    for (const chunk of chunks) meter.push(chunk)
    return meter
  }

  function letGo() {
    request = []
    held.free()
  }

  function contentOf({ encoded, chunks, meter }: Answer) {
    return meter ? { meter, errorBody: whole(chunks) } : { raw: whole(chunks), encoded }
  }

  return {
    traceId,
    requestBody(body) {
      request = [body]
    },
    requestChunk(chunk) {
      requestBytes += chunk.length
      const isFile = passed !== undefined && requestBytes > MAX_KEPT_BODY
      if (long === undefined && !isFile && held.add(chunk.length)) {
        request.push(chunk)
        return
      }
      long ??= longBody(hashing, request)
      long.push(chunk)
      letGo()
    },
    requestEnd() {
      // An answer may take minutes. Where there is room, the body waits for its end, and the thread of the receipts reads it.
      if (long || !held.isScarce) return
      read = requestOf({ request, api, headers, passed }, hashing)
      letGo()
    },
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
        api,
        passed,
        request: long ? long.part({ api, headers, passed }) : (read ?? request),
        answer: answer && { status: answer.status, headers: answer.headers, content: contentOf(answer) },
        sent: called !== undefined,
        times: { called: called ?? last, firstByte, lastByte: last, done: last },
      }
    },
  }
}

/** A body that is hashed on its way, since it is too long to be kept until its receipt is made, or there is no room for it. */
function longBody(hashing: Hashing, before: readonly Uint8Array[]) {
  const hashes = { prompt: started(hashing, 'prompt'), body: started(hashing, 'body') }
  let size = 0
  const push = (chunk: Uint8Array): void => {
    size += chunk.length
    hashes.prompt.update(chunk)
    hashes.body.update(chunk)
  }
  before.forEach(push)
  return {
    push,
    /** What the receipt says of the request; ask once, after its last byte. */
    part: (call: UnreadCall): RequestPart =>
      unreadRequestPart(
        call,
        { size, prompt_hash: toHex(hashes.prompt.digest()), body_sha256_in: toHex(hashes.body.digest()) },
        hashing,
      ),
  }
}

function started(hashing: Hashing, purpose: 'prompt' | 'body'): RunningSha256 {
  const hash = runningSha256(hashing.sha256)
  for (const bytes of hashStart(hashing, purpose)) hash.update(bytes)
  return hash
}
