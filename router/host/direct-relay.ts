import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { dialects } from '../../shared/dialects/dialects.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { RefusePage, Sender } from '../auth/pages.ts'
import { decideCall, readsBody } from '../inbound/decide-call.ts'
import { encodingOf } from '../inbound/decoded-body.ts'
import type { InboundDeps } from '../inbound/deps.ts'
import { type HeldEnd, heldEnd } from '../observe/held-end.ts'
import { type Observation, observation } from '../observe/observation.ts'
import { sayPassed } from '../observe/passed-line.ts'
import type { ObservedEnd } from '../observe/record.ts'
import { findTooLarge, tookTooLong, tooLarge, unreachable } from '../observe/relay.ts'
import { targetOf } from '../observe/target.ts'
import { headerValue, toClient, toUpstream } from '../upstream/headers.ts'
import { type HeaderList, TransportError } from '../upstream/transport.ts'
import { joinUpstream } from '../upstream/url.ts'
import { directEnforce, refuseDirect } from './direct-enforce.ts'
import { collect, type Exchange } from './exchange.ts'
import { incomingBody } from './incoming-body.ts'
import { isWholeWithoutBody, pairs, placeOf, toTransportError } from './undici-transport.ts'

export interface DirectRelayDeps extends Omit<InboundDeps, 'transport' | 'cut'> {
  agent: Dispatcher
  /** Where keys are asked for, every call goes through the door that asks. */
  keyed: boolean
  /** What it refuses goes through that door too. */
  refusePage: RefusePage
}

/** A body that announces itself as no longer than this is sent in one piece, which the pool does much faster. */
const ONE_PIECE = 64 * 1024

/** What the caller ends is over before an error of it comes here. */
const NEVER = new AbortController().signal

/**
 * Provider calls on Node's own objects: no Request, no Response, no web stream in between. The same call through the portable handlers
 * costs about twice the processor time. Takes the requests it can serve and leaves the others.
 */
export function directRelay(deps: DirectRelayDeps): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const { method = 'GET', url: target = '/' } = request
    const headers = pairs(request.rawHeaders)
    const query = target.indexOf('?')
    const path = query < 0 ? target : target.slice(0, query)
    const to = targetOf(method, path, headers)
    if (!to || deps.keyed || deps.refusePage(senderOf(headers)) !== undefined) return false
    const length = Number(headerValue(headers, 'content-length') ?? Number.NaN)
    const reads = readsBody(to, headers, deps.active())
    // A compressed body is unpacked by the portable handlers.
    const unread = reads && (Number.isNaN(length) || encodingOf(headers) !== undefined)
    if (length > deps.maxBodyBytes || unread) return false

    const exchange = { request, response, traceId: deps.newId(), method, path, target, headers, to }
    if (reads) {
      const times = { arrivedAt: deps.clock.now(), arrived: deps.clock.monotonic() }
      collect(request, body => decide(exchange, { ...times, body }, deps))
      return true
    }
    const send = passing(exchange, null, deps)
    if (length <= ONE_PIECE) collect(request, send)
    else if (request.headers['transfer-encoding'] === undefined && Number.isNaN(length)) send(NOTHING)
    else send(request)
    return true
  }
}

const NOTHING = Buffer.alloc(0)

const senderOf = (headers: HeaderList): Sender => ({
  host: headerValue(headers, 'host'),
  origin: headerValue(headers, 'origin'),
  site: headerValue(headers, 'sec-fetch-site'),
})

function decide(exchange: Exchange, read: { body: Buffer; arrivedAt: Date; arrived: number }, deps: DirectRelayDeps) {
  const { response, to } = exchange
  const active = deps.active()
  try {
    const decided = decideCall({ ...exchange, ...read }, to, active, deps)
    if ('observe' in decided) return passing(exchange, decided.observe, deps)(read.body)
    directEnforce(decided.enforce, deps.enforcing(active), response).catch((error: unknown) =>
      refuseDirect(error, exchange, deps),
    )
  } catch (error) {
    refuseDirect(error, exchange, deps)
  }
}

/** Gives what sends the call on with its body, and hands its answer back as it comes. */
function passing(
  { response, traceId, method, target, headers, to }: Exchange,
  routeIx: number | null,
  deps: DirectRelayDeps,
): (body: Buffer | IncomingMessage) => void {
  const { api } = to
  const { tenantId } = deps
  const observed =
    api === undefined || !deps.recorded
      ? undefined
      : observation({ traceId, tenantId, routeIx, target: { ...to, api }, headers }, deps.clock)
  const own = deps.outHeaders ? [responseHeaders.traceId, traceId, responseHeaders.mode, 'observe'] : []
  let abort: ((error?: Error) => void) | undefined
  let over = false
  let written = false
  let late: ReturnType<typeof setTimeout> | undefined
  let gaveUp: TransportError | undefined
  const since = deps.clock.monotonic()
  let status: number | null = null
  const end = (how: ObservedEnd): Promise<void> | undefined => {
    if (over) return undefined
    over = true
    clearTimeout(late)
    const ms = deps.clock.monotonic() - since
    sayPassed(deps.log, { traceId, tenantId, routeIx, method, target, status, how, ms })
    return record(observed, how, deps)
  }
  let held: HeldEnd | undefined
  const complete = () => response.end(held?.rest())
  const finish = () => {
    const stored = end('complete')
    if (stored === undefined) complete()
    else stored.then(complete, () => response.destroy())
  }
  // `close` without `finish` is a client that went away, by a reset or by closing its half early.
  response.on('close', () => {
    if (response.writableFinished) return
    void end('client_abort')
    abort?.()
  })

  return body => {
    if (Buffer.isBuffer(body) && body.length > 0) observed?.requestChunk(body)
    observed?.called()
    const mostMs = deps.totalMs()
    if (mostMs > 0 && !over) {
      late = setTimeout(() => {
        gaveUp = tookTooLong()
        abort?.(gaveUp)
      }, mostMs)
    }
    const at = placeOf(joinUpstream(deps.bases[to.dialect], target))
    const options: Dispatcher.DispatchOptions = {
      origin: at.origin,
      path: at.path,
      method: method as Dispatcher.HttpMethod,
      headers: toUpstream(headers).flat(),
      body: bodyOf(body, observed, deps) as Dispatcher.DispatchOptions['body'],
      headersTimeout: deps.timeouts().firstByteMs,
      bodyTimeout: deps.timeouts().idleMs,
    }
    deps.agent.dispatch(options, {
      onConnect(stop: (error?: Error) => void) {
        abort = stop
        if (over || gaveUp) stop(gaveUp)
      },
      onHeaders(code: number, raw: Buffer[], resume: () => void) {
        if (code < 200) return true
        const head = pairs(raw)
        status = code
        observed?.head(code, head, true)
        if (deps.durable) held = heldEnd(head)
        response.writeHead(code, [...toClient(head).flat(), ...own])
        response.on('drain', resume)
        // A body usually follows in the same turn and carries the head with it; a slow one must not hold it back.
        process.nextTick(() => {
          if (!written) response.flushHeaders()
        })
        return true
      },
      onData(chunk: Buffer) {
        written = true
        const piece = held === undefined ? chunk : held.pass(chunk)
        const flowing = piece === undefined || response.write(piece)
        observed?.chunk(chunk)
        return flowing
      },
      onComplete() {
        written = true
        finish()
      },
      onError(error: Error) {
        if (over) return
        if (isWholeWithoutBody(status, error)) {
          finish()
          return
        }
        const known = toTransportError(error, NEVER)
        void end(known instanceof TransportError && known.timeout !== undefined ? 'timeout' : 'transport')
        const oversize = findTooLarge(error)
        if (response.headersSent) response.destroy()
        else if (oversize)
          refuse(response, to.dialect, traceId, [...own, 'connection', 'close'], 'too_large', oversize.message)
        else refuse(response, to.dialect, traceId, own, 'upstream', unreachable(to.dialect))
      },
    })
  }
}

function bodyOf(body: Buffer | IncomingMessage, observed: Observation | undefined, { maxBodyBytes }: DirectRelayDeps) {
  if (!Buffer.isBuffer(body)) return passed(body, maxBodyBytes, observed)
  return body.length > 0 ? body : null
}

/** A body as it comes, counted and remembered, and read no faster than the upstream takes it. */
function passed(request: IncomingMessage, maxBytes: number, observed: Observation | undefined) {
  let size = 0
  const take = (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBytes) return body.fail(tooLarge(maxBytes))
    observed?.requestChunk(chunk)
    if (!body.push(chunk)) request.pause()
  }
  const body = incomingBody(
    () => request.resume(),
    // An upstream that has heard enough: what still comes is read and let go, so that its answer can reach the client.
    () => request.off('data', take).resume(),
  )
  request.on('data', take).on('end', body.end)
  return body.chunks
}

function record(
  observed: Observation | undefined,
  how: ObservedEnd,
  { recorded }: DirectRelayDeps,
): Promise<void> | undefined {
  if (!observed) return undefined
  observed.ended(how)
  const stored = recorded?.(observed)
  // Only an answer that is complete waits for it; the loss of another one's receipt is logged where it happens.
  if (how !== 'complete') stored?.catch(() => undefined)
  return stored
}

function refuse(
  response: ServerResponse,
  dialect: 'messages' | 'chat',
  traceId: string,
  own: readonly string[],
  kind: 'upstream' | 'too_large',
  message: string,
): void {
  const { status, headers, body } = dialects[dialect].routerError(kind, message, traceId)
  response.writeHead(status, [...headers.flat(), 'content-length', String(body.length), ...own])
  response.end(body)
}
