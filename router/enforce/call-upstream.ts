import type { AnswerProgress } from '../../shared/dialects/accumulator.ts'
import { type Billing, type Candidate, saysSomething, type Tokens } from '../../shared/dialects/candidate.ts'
import type { Dialect, MeterReading } from '../../shared/dialects/dialect.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import { atLeast, PLAIN_BILLING } from '../../shared/dialects/estimate.ts'
import { tryParseJson } from '../../shared/dialects/json-text.ts'
import { asObject, isObject, tryParse } from '../../shared/dialects/json-value.ts'
import { retryAfterMs } from '../../shared/dialects/retry-after.ts'
import { errorBody } from '../../shared/dialects/router-errors.ts'
import { outError } from '../../shared/dialects/translate/error.ts'
import { type SseFrame, sseReader } from '../../shared/http/sse-read.ts'
import { inputTokens } from '../../shared/prices/price.ts'
import { joined } from '../../shared/sign/bytes.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { stopUnder } from '../../shared/time/until-aborted.ts'
import type { ErrorClass } from '../../shared/wire/router/trace.ts'
import { cloudHost } from '../cloud/cloud-request.ts'
import { EventStreamError, eventStreamToSse } from '../cloud/event-stream.ts'
import type { Model } from '../config/model.ts'
import type { Limits, Provider } from '../config/routing-config.ts'
import type { ShedReason } from '../metrics/live-metrics.ts'
import type { HeldBody } from '../proxy/exchange.ts'
import { decoded as decodedBody, EncodingError, headerValue } from '../upstream/headers.ts'
import {
  type HeaderList,
  ownLimit,
  type Transport,
  TransportError,
  type UpstreamResponse,
} from '../upstream/transport.ts'
import { type Proof, sendSigned } from './send-signed.ts'

export interface CallRequest {
  rung: Model
  provider: Provider
  url: string
  headers: HeaderList
  body: Uint8Array<ArrayBuffer>
  /** What the body is billed for, where the upstream does not say. */
  sentTokens: number
  /** The `n` of the request: fewer finished choices are a cut answer. */
  choices: number
  /** What the client is shown of a frame; undefined leaves it out. */
  shown?: ((frame: SseFrame) => Uint8Array | undefined) | undefined
  /** Of a call that is signed over its final bytes. */
  sign?: Proof | undefined
  follow?: Follower | undefined
}

/** Sees an answer while it comes in; frames that it lets go cannot be taken back. */
export interface Follower {
  frame(raw: Uint8Array, progress: AnswerProgress, head: { status: number; headers: HeaderList }): void
  readonly began: boolean
}

/** A whole answer, decoded, with the bytes it came in. */
interface Answered {
  kind: 'answered'
  status: number
  headers: HeaderList
  candidate: Candidate
  /** The answer as JSON of the upstream's dialect. */
  json: Uint8Array
  /** The recorded frames without comments and pings, when the upstream streamed and clients can read them as they are. */
  frames: readonly Uint8Array[] | undefined
}

/** The upstream refused over HTTP, or said an error inside its answer. */
interface Refused {
  kind: 'refused'
  status: number
  headers: HeaderList
  body: Uint8Array
  errorClass: ErrorClass
  /** Not of the upstream's dialect. */
  foreign?: boolean
  /** Another rung may be tried; false for what only the client can put right. */
  failover: boolean
  retryAfterMs: number | undefined
}

/** No usable answer came. */
interface Broken {
  kind: 'broken'
  errorClass: 'transport' | 'timeout' | 'bad_response' | 'client_abort' | 'breaker_open'
  detail: string
}

/** The router had no room for the rest of its answer, which is billed, or no connection left to ask with: no fault of the upstream. */
interface NoRoom {
  kind: 'no_room'
  errorClass: 'bad_response' | 'transport'
  of: ShedReason
  detail: string
}

/** So much of an answer is read whether there is room or not: most have no more, and each is billed. */
const NEEDS_NO_ROOM = 64 * 1024

/** What comes beyond it counts three times: at its end an answer is held as frames, as text and as JSON, which of short ones few are at once. */
const LONG_STREAM = 1024 * 1024

/** What a client, a log and a gate read of a call without room for its answer. */
const NO_ROOM = 'the requests and answers of this router take up all the bytes that it holds at once (max_held_bytes)'

export type AnsweredCall = Answered & CallCosts
export type RefusedCall = Refused & CallCosts
export type BrokenCall = Broken & CallCosts
export type NoRoomCall = NoRoom & CallCosts
export type CallResult = AnsweredCall | RefusedCall | BrokenCall | NoRoomCall

export interface CallCosts {
  tokens: Tokens | null
  billing: Billing
  usageSource: 'provider' | 'estimated' | 'none'
  status: number | null
  finish: string | null
  upstreamRequestId: string | undefined
  /** Milliseconds on the clock that never jumps. */
  startedAt: number
  firstByteAt: number | undefined
  endedAt: number
}

/** One for all calls: an abort without a reason makes an exception with a stack of its own each time. */
const OVER = new Error('the call is over')

/** Models call a handful of tools at once; what is written anew for a client holds other calls up meanwhile. */
const MOST_CALLS = 1000

/** An error body beyond this is passed on and says nothing to us: its status does. */
const MAX_READ_ERROR = 1024 * 1024

/** Makes one call and reads its answer whole. Never throws: whatever happens is a result that the cascade decides on. */
export async function callUpstream(
  request: CallRequest,
  {
    transport,
    clock,
    limits,
    signal,
    held,
  }: { transport: Transport; clock: Clock; limits: Limits; signal: AbortSignal; held: Pick<HeldBody, 'add'> },
): Promise<CallResult> {
  const { rung, provider, choices, follow, shown = rawOf, sentTokens } = request
  const dialect = dialects[rung.dialect]
  const startedAt = clock.monotonic()
  let meter: { reading(): MeterReading } | undefined
  let firstByteAt: number | undefined
  let response: UpstreamResponse | undefined
  const costs = (
    tokens: Tokens | null,
    usageSource: CallCosts['usageSource'],
    finish: string | null = null,
    billing: Billing = PLAIN_BILLING,
  ): CallCosts => ({
    tokens,
    billing,
    usageSource,
    status: response?.status ?? null,
    finish,
    upstreamRequestId: response && requestIdOf(response.headers),
    startedAt,
    firstByteAt,
    endedAt: clock.monotonic(),
  })
  /**
   * What a call that was cut is billed: the last usage seen, no less output than the text that came, and no less input than was sent, where
   * something came or the upstream is `at` it.
   */
  const costsOfCut = (at: boolean): CallCosts => {
    const nothing = { tokens: null, textBytes: 0, finish: null, billing: PLAIN_BILLING }
    const { tokens, textBytes, finish, billing } = meter?.reading() ?? nothing
    if (!at && textBytes === 0 && tokens === null) return costs(null, 'none', finish, billing)
    const counted = atLeast(tokens, textBytes)
    const input = inputTokens(counted) > 0 ? {} : { uncached: sentTokens }
    return costs({ ...counted, ...input }, 'estimated', finish, billing)
  }
  const broken = (errorClass: Broken['errorClass'], detail: string, at = false): CallResult => ({
    kind: 'broken',
    errorClass,
    detail,
    ...costsOfCut(at),
  })
  const tooMuch = (reason: Excess): CallResult =>
    reason === 'too_large'
      ? broken('bad_response', 'the answer is larger than max_response_bytes', true)
      : { kind: 'no_room', of: 'bytes', errorClass: 'bad_response', detail: NO_ROOM, ...costsOfCut(true) }
  // Ends whatever the call has left open, and the call itself when it takes longer than its provider is given.
  const { stop, leave } = stopUnder(signal)
  let open = true
  const late = setTimeout(
    () => stop.abort(new TransportError('the upstream did not finish its answer in time', { timeout: 'total' })),
    provider.timeouts.totalMs,
  )
  let wordless: ReturnType<typeof setTimeout> | undefined
  let saidAt = 0
  const watchWords = (ms: number) => {
    wordless = setTimeout(() => {
      const left = saidAt + provider.timeouts.contentMs - clock.monotonic()
      if (left > 0) return watchWords(left)
      stop.abort(new TransportError('the upstream kept its answer open and said nothing', { timeout: 'content' }))
    }, ms)
  }

  try {
    const { url, body: sent } = request
    const toSign = { url, headers: request.headers, body: sent, signal: stop.signal }
    const send = (headers: HeaderList) =>
      transport.send({ method: 'POST', url, headers, body: sent, signal: stop.signal, timeouts: provider.timeouts })
    response = await (request.sign ? sendSigned(request.sign, toSign, send) : send(request.headers))
    const { status } = response
    const { headers, body } = asSse(decodedBody(response))
    const streamed = /^text\/event-stream/i.test(headerValue(headers, 'content-type') ?? '')
    const count = answerSize(limits.maxResponseBytes, held, streamed)
    // A client would follow it, with its prompt and its key for this router.
    if (status > 299 && status < 400) return broken('bad_response', `the upstream answered ${status}, a redirect`)
    if (status < 200 || status > 299) {
      const said = await readWhole(body, count, () => (firstByteAt ??= clock.monotonic()))
      open = typeof said === 'string'
      const isRead = typeof said !== 'string' && said.length <= MAX_READ_ERROR
      const fault = dialect.classifyFault(status, isRead ? said : new Uint8Array())
      const wait = retryAfterMs(name => headerValue(headers, name), clock.now(), fault.error)
      return {
        ...costs(null, 'none'),
        kind: 'refused',
        status,
        ...(typeof said === 'string' ? refusalInBrief(status, headers, dialect) : { headers, body: said }),
        // The host refused in its own words, before the model's provider saw the call.
        foreign: cloudHost(provider) !== undefined && isRead && !isOwnError(said),
        errorClass: fault.class,
        failover: fault.failover,
        retryAfterMs: wait,
      }
    }
    const frames: Uint8Array[] = []
    let decoded: ReturnType<typeof dialect.decodeJson>
    if (streamed) {
      const reader = sseReader({ maxFrameBytes: limits.maxResponseBytes })
      const counting = dialect.meter()
      meter = counting
      const accumulator = dialect.accumulator({ expectedChoices: choices })
      let textBytes = 0
      saidAt = clock.monotonic()
      watchWords(provider.timeouts.contentMs)
      for await (const chunk of body) {
        firstByteAt ??= clock.monotonic()
        const excess = count(chunk)
        if (excess !== undefined) return tooMuch(excess)
        const passed: SseFrame[] = []
        for (const frame of reader.push(chunk)) {
          counting.push(frame)
          accumulator.push(frame)
          if (dialect.isKeepAlive(frame)) continue
          passed.push(frame)
          const bytes = shown(frame)
          if (bytes === undefined) continue
          frames.push(bytes)
          if (!accumulator.failure) follow?.frame(bytes, accumulator.progress, { status, headers })
        }
        const before = textBytes
        textBytes = counting.reading().textBytes
        // What the meter does not count is read once more, which is rare.
        const isWord = (frame: SseFrame) => saysSomething(rung.dialect, eventOf(frame))
        if (textBytes > before || passed.some(isWord)) saidAt = clock.monotonic()
        // Nothing that could follow makes it an answer, and some upstreams leave the connection open after an error.
        if (accumulator.failure) break
      }
      decoded = accumulator.finish({ incomplete: reader.rest().incomplete })
    } else {
      const whole = await readWhole(body, count, () => (firstByteAt ??= clock.monotonic()))
      if (typeof whole === 'string') return tooMuch(whole)
      open = false
      decoded = dialect.decodeJson(whole)
      // What is no usable answer is billed all the same.
      const said = decoded.ok ? undefined : readingOf(dialect, whole)
      if (said) meter = { reading: () => said }
    }
    if (!decoded.ok) {
      if (decoded.error === undefined) return broken('bad_response', decoded.detail)
      const fault = dialect.classifyStreamError(decoded.error)
      // Of a fault of its own the upstream has said nothing over HTTP.
      const status = fault.status === 500 ? 502 : fault.status
      return {
        ...costsOfCut(false),
        kind: 'refused',
        status,
        headers: [],
        body: errorBody(rung.dialect, outError(status, decoded.error, '')),
        errorClass: fault.class,
        failover: fault.failover,
        retryAfterMs: undefined,
      }
    }
    const { candidate, body: answer, replayable } = decoded
    const calls = candidate.choices.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0)
    if (calls > MOST_CALLS) {
      const detail = `the answer calls ${calls} tools, and at most ${MOST_CALLS} are taken`
      const counted = candidate.tokens ? costs(candidate.tokens, 'provider') : costsOfCut(true)
      return { kind: 'broken', errorClass: 'bad_response', detail, ...counted }
    }
    return {
      ...costs(
        candidate.tokens,
        candidate.tokens ? 'provider' : 'estimated',
        candidate.choices[0]?.finish ?? null,
        candidate.billing,
      ),
      kind: 'answered',
      status,
      headers,
      candidate,
      json: answer,
      frames: streamed && (replayable || follow?.began) ? frames : undefined,
    }
  } catch (error) {
    const isAnswering = response !== undefined && response.status >= 200 && response.status < 300
    if (signal.aborted && !ranOut(signal)) return broken('client_abort', 'the call was cancelled', true)
    if (error instanceof EncodingError || error instanceof EventStreamError)
      return broken('bad_response', error.message)
    const own = response === undefined ? ownLimit(error) : undefined
    if (own !== undefined)
      return { kind: 'no_room', of: 'connections', errorClass: 'transport', detail: own, ...costs(null, 'none') }
    // Whether an upstream that cannot be reached any more has the call is not known; one that is waited for has it.
    const limit = error instanceof TransportError ? error.timeout : undefined
    if (limit !== undefined) return broken('timeout', why(error), isAnswering || limit !== 'connect')
    return broken('transport', why(error), isAnswering)
  } finally {
    clearTimeout(late)
    clearTimeout(wordless)
    leave()
    if (open) stop.abort(OVER)
  }
}

/** Whether a request was given up because its time was over, and not because its client left. */
export function ranOut({ reason }: AbortSignal): boolean {
  return reason instanceof TransportError && reason.timeout !== undefined
}

/** A call that was not made, because the provider's breaker is open. */
export function notCalled(now: number): CallResult {
  return {
    kind: 'broken',
    errorClass: 'breaker_open',
    detail: 'the provider failed too often and is given time',
    tokens: null,
    billing: PLAIN_BILLING,
    usageSource: 'none',
    status: null,
    finish: null,
    upstreamRequestId: undefined,
    startedAt: now,
    firstByteAt: undefined,
    endedAt: now,
  }
}

/** A refusal whose own words are more than an answer may have. */
function refusalInBrief(status: number, headers: HeaderList, dialect: Dialect): Pick<Refused, 'headers' | 'body'> {
  const message = `the upstream refused with status ${status}, and said so in more than is read`
  return {
    headers: [
      ...headers.filter(([name]) => name.toLowerCase() !== 'content-type'),
      ['content-type', 'application/json'],
    ],
    body: dialect.routerError('upstream', message, '').body,
  }
}

function readingOf(dialect: Dialect, body: Uint8Array): MeterReading | undefined {
  try {
    return dialect.readBody(body)
  } catch {
    return undefined
  }
}

/** Cloud hosts serve the messages dialect; what its provider refuses says so in its type. */
function isOwnError(body: Uint8Array): boolean {
  const value = tryParseJson(body)
  return isObject(value) && value.type === 'error'
}

const eventOf = ({ data = '' }: SseFrame) => asObject(tryParse(data))

const rawOf = ({ raw }: SseFrame): Uint8Array => raw

type Excess = 'too_large' | 'no_room'

/** Counts the pieces of an answer, and says why one is too much. */
function answerSize(
  most: number,
  held: Pick<HeldBody, 'add'>,
  streamed: boolean,
): (chunk: Uint8Array) => Excess | undefined {
  let size = 0
  return ({ length }) => {
    size += length
    if (size > most) return 'too_large'
    const counted = streamed && size > LONG_STREAM ? 3 * length : length
    return held.add(counted, size <= NEEDS_NO_ROOM) ? undefined : 'no_room'
  }
}

/** The whole body, or why it is too much. */
async function readWhole(
  body: AsyncIterable<Uint8Array>,
  count: ReturnType<typeof answerSize>,
  first: () => void,
): Promise<Uint8Array | Excess> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) {
    first()
    const excess = count(chunk)
    if (excess !== undefined) return excess
    chunks.push(chunk)
  }
  if (chunks.length === 1) return chunks[0]!
  return joined(chunks)
}

/** Binary events are read as the frames that they carry. */
function asSse(answer: ReturnType<typeof decodedBody>): ReturnType<typeof decodedBody> {
  if (headerValue(answer.headers, 'content-type') !== 'application/vnd.amazon.eventstream') return answer
  const headers = answer.headers.filter(([name]) => !/^content-(?:type|length)$/i.test(name))
  return { headers: [...headers, ['content-type', 'text/event-stream']], body: eventStreamToSse(answer.body) }
}

/** What went wrong, with the system's word for it. */
function why(error: unknown): string {
  if (!(error instanceof Error)) return 'the call failed'
  if (error instanceof TransportError && error.byProxy) return error.message
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return error.message + cause
}

function requestIdOf(headers: HeaderList): string | undefined {
  return (
    headerValue(headers, 'request-id') ??
    headerValue(headers, 'x-request-id') ??
    headerValue(headers, 'x-amzn-requestid')
  )
}
