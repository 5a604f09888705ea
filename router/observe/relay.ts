import { ApiError } from '../../shared/http/api-error.ts'
import { tooLarge } from '../../shared/http/body-limit.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { Limits } from '../config/routing-config.ts'
import type { ShedReason } from '../metrics/live-metrics.ts'
import type { Exchange, HeldBody } from '../proxy/exchange.ts'
import type { Hashing } from '../receipt/request-part.ts'
import type { Receipts } from '../receipts.ts'
import { headerValue, toClient, toUpstream, UNBUFFERED } from '../upstream/headers.ts'
import {
  type AnswerSink,
  type HeaderList,
  ownLimit,
  type Transport,
  TransportError,
  type UpstreamHead,
  type UpstreamRequest,
} from '../upstream/transport.ts'
import { type Observation, observation } from './observation.ts'
import type { ObservedEnd } from './record.ts'
import { joinUpstream, type Target } from './target.ts'

export interface RelayDeps {
  transport: Transport
  bases: Readonly<Record<'messages' | 'chat', string>>
  clock: Clock
  log: Log
  /** Gets one line for each call. */
  callLog: Log
  /** Undefined where nothing is kept. */
  record: Receipts['observed'] | undefined
  hashing: Hashing
  /** An answer ends only when its receipt is stored. */
  durable: boolean
  maxBodyBytes: number
  /** Whether answers carry our own headers. */
  outHeaders: boolean
  refuseWhenFull: (reason: ShedReason) => void
}

export interface PassedCall {
  exchange: Exchange
  /** Path and query as the provider has them. */
  target: string
  to: Target
  traceId: string
  tenantId: string
  /** Index of the matched route; null without one. */
  routeIx: number | null
  held: HeldBody
  /** Where a decision has read it already. */
  body?: Uint8Array<ArrayBuffer>
  limits: Limits
}

/** A body that announces itself as no longer than this is sent in one piece, which pools of connections do much faster. */
const ONE_PIECE = 64 * 1024
const UNCOUNTED = { add: () => true }

/** What is only passed on is never collected, so that a file of any size may pass. */
export const isPassed = (to: Target): boolean => to.api === 'passthrough'

/** One for all calls: an error has a stack, which costs more than all else that is done here. */
const GONE = new Error('the client went away')

/** Passes one call through: bytes in, bytes out, with a record of it made beside (docs/spec/router.md §3). */
export async function relay(call: PassedCall, deps: RelayDeps): Promise<void> {
  const { exchange, target, to, limits } = call
  const track = trackCall(call, deps)
  let stop: ((error: unknown) => void) | undefined
  // A client may leave before the first byte of the answer was asked for: nothing else would notice then.
  exchange.onGone(() => {
    void track.end('client_abort')
    stop?.(GONE)
  })
  const giveUp = (error: unknown): never => {
    void track.end(endOf(error, exchange))
    throw error
  }
  const body =
    call.body ??
    (await bodyOf(exchange, track.observation, isPassed(to) ? Number.POSITIVE_INFINITY : deps.maxBodyBytes).catch(
      giveUp,
    ))
  if (exchange.isGone) throw GONE
  const isWhole = body instanceof Uint8Array
  if (isWhole && body.length > 0) track.observation?.requestBody(body)
  const request = {
    method: exchange.method,
    url: joinUpstream(deps.bases[to.dialect], target, to.dialect),
    headers: toUpstream(exchange.headers),
    body: isWhole && body.length === 0 ? null : body,
    timeouts: limits,
  }
  const { transport } = deps
  return new Promise((resolve, reject) => {
    const sink = answerSink(call, track, deps, { resolve, reject })
    track.begin(error => stop?.(error))
    stop = transport.relay ? transport.relay(request, sink) : pumpAnswer(transport, request, sink)
  })
}

/** Hands the answer of the upstream to the client, piece by piece; settles when it has ended. */
function answerSink(
  { exchange, to, traceId }: PassedCall,
  track: Track,
  deps: RelayDeps,
  { resolve, reject }: { resolve: () => void; reject: (error: unknown) => void },
): AnswerSink {
  let tail: ReturnType<typeof heldEnd> | undefined
  let hasHead = false
  const complete = () => {
    exchange.end(tail?.rest())
    resolve()
  }
  return {
    head(answer, resume) {
      hasHead = true
      track.takeHead(answer)
      if (deps.durable) tail = heldEnd(answer.headers)
      const head = toClient(answer.headers)
      if (deps.outHeaders) {
        head.push([responseHeaders.traceId, traceId], [responseHeaders.mode, 'observe'])
        if (isUnsaidStream(answer.headers)) head.push(UNBUFFERED)
      }
      exchange.head(answer.status, head)
      exchange.onDrain(resume)
    },
    chunk(chunk) {
      const piece = tail === undefined ? chunk : tail.pass(chunk)
      const flows = piece === undefined || exchange.write(piece)
      track.observation?.chunk(chunk)
      return flows
    },
    end() {
      const receipt = track.end('complete')
      if (receipt === undefined) complete()
      else receipt.then(complete).catch(reject)
    },
    fail(error) {
      void track.end(endOf(error, exchange))
      if (hasHead || exchange.isGone) reject(error)
      else reject(findRefusal(error) ?? failure(to.dialect, error, deps))
    },
  }
}

/** Whether it is a stream of which its provider has not said whether a proxy may hold it back. */
const isUnsaidStream = (headers: HeaderList): boolean =>
  headerValue(headers, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true &&
  headerValue(headers, UNBUFFERED[0]) === undefined

type Track = ReturnType<typeof trackCall>

/** Follows a call for its receipt, its line in the log and its time limit; however it ends, it ends once. */
function trackCall(call: PassedCall, deps: RelayDeps) {
  const { exchange, target, to, traceId, tenantId, routeIx, limits, held } = call
  const { clock, record } = deps
  const { headers, method } = exchange
  const passed = isPassed(to) ? { vendor: to.dialect, method, path: target.split('?', 1)[0]! } : undefined
  const watch = record && observation({ traceId, tenantId, routeIx, api: to.api, passed, headers }, held, deps)
  const since = clock.monotonic()
  let status: number | null = null
  let over = false
  let late: ReturnType<typeof setTimeout> | undefined
  return {
    observation: watch,
    /** The request is about to be sent. */
    begin(stop: (error: unknown) => void): void {
      watch?.called()
      const mostMs = limits.observeTotalMs
      if (mostMs > 0 && !over) late = setTimeout(() => stop(tookTooLong()), mostMs)
    },
    takeHead({ status: code, headers, rawEncoding }: UpstreamHead): void {
      status = code
      watch?.head(code, headers, rawEncoding)
    },
    /** Resolves when the receipt is stored; undefined where no answer waits for that. */
    end(how: ObservedEnd): Promise<void> | undefined {
      if (over) return undefined
      over = true
      clearTimeout(late)
      const ms = clock.monotonic() - since
      // The line says whose call it was, where to and how it ended, and nothing of what was said.
      deps.callLog.info('a call was passed on', {
        trace_id: traceId,
        tenant_id: tenantId,
        route: routeIx,
        method: exchange.method,
        path: target.split('?', 1)[0],
        status,
        ended: how,
        ms: Math.round(ms * 1000) / 1000,
      })
      if (!watch) return undefined
      watch.ended(how)
      const receipt = record?.(watch)
      // Only an answer that is complete waits for it; the loss of another one's receipt is logged where it happens.
      if (how !== 'complete') receipt?.catch(() => undefined)
      return receipt
    },
  }
}

async function bodyOf(exchange: Exchange, watch: Observation | undefined, maxBytes: number) {
  const { contentLength } = exchange
  if (contentLength !== undefined && contentLength <= ONE_PIECE) return exchange.readBody(maxBytes, UNCOUNTED)
  const body = exchange.streamBody()
  return body && watchBody(body, maxBytes, watch)
}

/** The request's bytes on their way, counted and remembered. */
async function* watchBody(body: AsyncIterable<Uint8Array>, maxBytes: number, watch: Observation | undefined) {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge(maxBytes)
    watch?.requestChunk(chunk)
    yield chunk
  }
  watch?.requestEnd()
}

function endOf(error: unknown, exchange: Exchange): ObservedEnd {
  if (exchange.isGone) return 'client_abort'
  return error instanceof TransportError && error.timeout !== undefined ? 'timeout' : 'transport'
}

/** Of the limit that an operator has set for calls that are only passed on. */
function tookTooLong(): TransportError {
  return new TransportError('the call took longer than observe_total_ms', { timeout: 'total' })
}

function failure(dialect: 'messages' | 'chat', error: unknown, deps: Pick<RelayDeps, 'refuseWhenFull'>): ApiError {
  const own = ownLimit(error)
  if (own === undefined) return new ApiError('upstream', unreachable(dialect, error), { cause: error })
  deps.refuseWhenFull('connections')
  return new ApiError('overloaded', own, { cause: error, headers: { 'retry-after': '1' } })
}

function unreachable(dialect: 'messages' | 'chat', error: unknown): string {
  if (error instanceof TransportError && error.byProxy) return `the call did not reach its upstream: ${error.message}`
  const name = dialect === 'messages' ? 'ROUTER_UPSTREAM_MESSAGES' : 'ROUTER_UPSTREAM_CHAT'
  const fault = certificateFault(error)
  if (fault !== undefined)
    return `the certificate of the upstream of the ${dialect} dialect is not trusted (${fault}): check ${name}`
  return `the upstream of the ${dialect} dialect could not be reached: check the network and ${name}`
}

/** The words of OpenSSL, and of Node, for a certificate that proves nothing. */
const CERTIFICATE = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_)[A-Z_]+$/

function certificateFault(error: unknown): string | undefined {
  for (let at = error, depth = 0; depth < 8 && at instanceof Error; at = at.cause, depth++) {
    if ('code' in at && CERTIFICATE.test(String(at.code))) return String(at.code)
  }
  return undefined
}

/** The refusal of a body that grew beyond the limit, wherever the transport has wrapped it. */
function findRefusal(error: unknown): ApiError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof ApiError) return cause
  return undefined
}

/**
 * Holds back the piece with which a body of a stated length is complete, so that the client has not all of it before the receipt is
 * stored. A body without a length ends by its end, and passes as it comes.
 */
function heldEnd(headers: HeaderList) {
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  let left = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
  let lastPiece: Uint8Array | undefined
  return {
    /** What may be sent now: undefined for the piece that is held back. */
    pass(chunk: Uint8Array): Uint8Array | undefined {
      left -= chunk.length
      const before = lastPiece
      lastPiece = left <= 0 ? chunk : undefined
      if (lastPiece === undefined) return chunk
      return before
    },
    /** The piece that was held back. */
    rest: (): Uint8Array | undefined => lastPiece,
  }
}

/** `relay` for a transport that only sends. */
function pumpAnswer(
  transport: Transport,
  request: Omit<UpstreamRequest, 'signal'>,
  sink: AnswerSink,
): (error: unknown) => void {
  const stop = new AbortController()
  let resume: (() => void) | undefined
  const pump = async () => {
    const { body, ...head } = await transport.send({ ...request, signal: stop.signal })
    sink.head(head, () => resume?.())
    for await (const chunk of body) {
      if (sink.chunk(chunk)) continue
      await new Promise<void>(resolve => {
        resume = resolve
      })
    }
  }
  pump().then(sink.end, sink.fail)
  return error => {
    stop.abort(error)
    resume?.()
  }
}
