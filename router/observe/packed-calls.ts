import type { MeterReading } from '../../shared/dialects/dialect.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { byteRun, takeFrom } from '../receipt/packed-records.ts'
import type { Hashing, RequestPart } from '../receipt/request-part.ts'
import type { HeaderList } from '../upstream/transport.ts'
import { type EndedCall, isBody, MAX_ERROR_BODY, type PassedPath, readingOf, requestOf } from './ended-call.ts'
import type { ObservedEnd } from './record.ts'
import type { TracedApi } from './target.ts'

/** Ended calls on their way to another thread: what is short as JSON, the bodies as one run of bytes that changes hands uncopied. */
export interface PackedCalls {
  heads: string
  bytes: Uint8Array<ArrayBuffer>
}

/** The headers that a receipt is made from; no other leaves the call, least of all a credential. */
const READ = new Set([
  'content-encoding',
  'content-type',
  'request-id',
  'traceparent',
  'user-agent',
  'x-request-id',
  'x-router-agent',
  'x-router-language',
  'x-router-session',
  'x-router-subagent',
  'x-router-task',
])

/** Of the request: how many bytes, or what is said about it. Of the answer: the bytes, and the reading if one was made. */
type Head = [
  traceId: string,
  tenantId: string,
  routeIx: number | null,
  arrivedAt: number,
  api: TracedApi,
  headers: HeaderList,
  request: number | RequestPart,
  end: ObservedEnd,
  sent: boolean,
  called: number,
  firstByte: number | null,
  lastByte: number,
  done: number,
  answer:
    | [status: number, headers: HeaderList, bytes: number, encoded: boolean]
    | [status: number, headers: HeaderList, bytes: number, reading: { read: MeterReading | null }]
    | null,
  passed?: PassedPath,
]

/** A call whose answer, if it was metered, has been read: nothing of it is still going on. */
export interface Packable extends EndedCall {
  reading?: MeterReading | undefined
}

/** Whether the answer is still bytes: one that was metered on its way must be read where its meter is. */
export function isRaw({ answer }: EndedCall): boolean {
  return answer === undefined || 'raw' in answer.content
}

/** Reads a call, so that only what was read need travel. */
export async function readForTravel(call: EndedCall, hashing: Hashing): Promise<Packable> {
  const { answer } = call
  const reading = await readingOf(call)
  const errorBody = answer === undefined ? new Uint8Array(0) : answerBytes(answer.content).subarray(0, MAX_ERROR_BODY)
  const content = { meter: { reading: async () => reading }, errorBody }
  return { ...call, request: requestOf(call, hashing), answer: answer && { ...answer, content }, reading }
}

export function bytesOf({ request, answer }: EndedCall): number {
  const asked = isBody(request) ? request.reduce((sum, piece) => sum + piece.length, 0) : 0
  return asked + (answer === undefined ? 0 : answerBytes(answer.content).length)
}

export function packCalls(calls: readonly Packable[]): PackedCalls {
  const { bytes, put } = byteRun(calls.reduce((sum, call) => sum + bytesOf(call), 0))
  const heads = calls.map((call): Head => {
    const { request, answer, times } = call
    const asked = isBody(request) ? request.reduce((sum, piece) => sum + put(piece), 0) : request
    return [
      call.traceId,
      call.tenantId,
      call.routeIx,
      call.arrivedAt.getTime(),
      call.api,
      read(call.headers),
      asked,
      call.end,
      call.sent,
      times.called,
      times.firstByte ?? null,
      times.lastByte,
      times.done,
      answer === undefined
        ? null
        : [
            answer.status,
            read(answer.headers),
            put(answerBytes(answer.content)),
            'raw' in answer.content ? answer.content.encoded : { read: call.reading ?? null },
          ],
      ...(call.passed ? [call.passed] : []),
    ] as Head
  })
  return { heads: JSON.stringify(heads), bytes }
}

export function unpackCalls({ heads, bytes }: PackedCalls): EndedCall[] {
  const take = takeFrom(bytes)
  return (readJson(heads) as Head[]).map((head): EndedCall => {
    const [traceId, tenantId, routeIx, arrivedAt, api, headers, asked, end, sent, ...rest] = head
    const [called, firstByte, lastByte, done, answer, passed] = rest
    const request = typeof asked === 'number' ? [take(asked)] : asked
    return {
      traceId,
      tenantId,
      routeIx,
      arrivedAt: new Date(arrivedAt),
      api,
      passed,
      headers,
      request,
      end,
      sent,
      times: { called, firstByte: firstByte ?? undefined, lastByte, done },
      answer: answer === null ? undefined : answerOf(answer, take(answer[2])),
    }
  })
}

function answerOf([status, headers, , how]: NonNullable<Head[13]>, bytes: Uint8Array): EndedCall['answer'] {
  if (typeof how === 'boolean') return { status, headers, content: { raw: bytes, encoded: how } }
  const meter = { reading: async () => how.read ?? undefined }
  return { status, headers, content: { meter, errorBody: bytes } }
}

function answerBytes(content: NonNullable<EndedCall['answer']>['content']): Uint8Array {
  return 'raw' in content ? content.raw : content.errorBody
}

function read(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => READ.has(name.toLowerCase()))
}
