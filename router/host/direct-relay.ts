import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { dialects } from '../../shared/dialects/dialects.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import { type Observation, observation } from '../observe/observation.ts'
import type { ObservedEnd } from '../observe/record.ts'
import { findTooLarge, type RelayDeps, unreachable, watched } from '../observe/relay.ts'
import { targetOf } from '../observe/target.ts'
import { headerValue, toClient, toUpstream } from '../upstream/headers.ts'
import { TransportError } from '../upstream/transport.ts'
import { joinUpstream } from '../upstream/url.ts'
import { pairs, toTransportError } from './undici-transport.ts'

export interface DirectRelayDeps extends Omit<RelayDeps, 'transport'> {
  agent: Dispatcher
  tenantId: string
  outHeaders: boolean
  /** True while a routing config asks for bodies to be read. */
  reads: () => boolean
}

/** A body that announces itself as no longer than this is sent in one piece, which the pool does much faster. */
const ONE_PIECE = 64 * 1024

/** What the caller ends is over before an error of it comes here. */
const NEVER = new AbortController().signal

interface Place {
  origin: string
  path: string
}

/** Clients ask for the same few paths, and taking an address apart costs as much as all else that is looked at in a head. */
const places = new Map<string, Place>()
const MAX_PLACES = 100

function place(base: string, target: string): Place {
  const key = `${base} ${target}`
  const known = places.get(key)
  if (known !== undefined) return known
  const { origin, pathname, search } = new URL(joinUpstream(base, target))
  const made = { origin, path: pathname + search }
  if (places.size >= MAX_PLACES) places.clear()
  places.set(key, made)
  return made
}

/**
 * Observe mode on Node's own objects: no Request, no Response, no web stream in between. The same call through the
 * portable relay costs about twice the processor time. Takes the requests it can serve and leaves the others.
 */
export function directRelay(deps: DirectRelayDeps): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const { method = 'GET', url: target = '/' } = request
    const headers = pairs(request.rawHeaders)
    const query = target.indexOf('?')
    const to = targetOf(method, query < 0 ? target : target.slice(0, query), headers)
    if (!to || deps.reads() || headerValue(headers, responseHeaders.mode) !== undefined) return false
    const length = Number(headerValue(headers, 'content-length') ?? Number.NaN)
    if (length > deps.maxBodyBytes) return false

    const traceId = deps.newId()
    const { api } = to
    const observed =
      api === undefined || !deps.recorded
        ? undefined
        : observation({ traceId, tenantId: deps.tenantId, routeIx: null, target: { ...to, api }, headers }, deps.clock)
    const own = deps.outHeaders ? [responseHeaders.traceId, traceId, responseHeaders.mode, 'observe'] : []
    let abort: ((error?: Error) => void) | undefined
    let over = false
    let written = false
    const end = (how: ObservedEnd) => {
      if (over) return
      over = true
      record(observed, how, deps)
    }
    // `close` without `finish` is a client that went away, by a reset or by closing its half early.
    response.on('close', () => {
      if (response.writableFinished) return
      end('client_abort')
      abort?.()
    })

    const send = (body: Buffer | AsyncIterable<Uint8Array> | null) => {
      observed?.called()
      const at = place(deps.bases[to.dialect], target)
      const options: Dispatcher.DispatchOptions = {
        origin: at.origin,
        path: at.path,
        method: method as Dispatcher.HttpMethod,
        headers: toUpstream(headers).flat(),
        body: body as Dispatcher.DispatchOptions['body'],
        headersTimeout: deps.timeouts().firstByteMs,
        bodyTimeout: deps.timeouts().idleMs,
      }
      deps.agent.dispatch(options, {
        onConnect(stop: (error?: Error) => void) {
          abort = stop
          if (over) stop()
        },
        onHeaders(status: number, raw: Buffer[], resume: () => void) {
          if (status < 200) return true
          const head = pairs(raw)
          observed?.head(status, head, true)
          response.writeHead(status, [...toClient(head).flat(), ...own])
          response.on('drain', resume)
          // A body usually follows in the same turn and carries the head with it; a slow one must not hold it back.
          process.nextTick(() => {
            if (!written) response.flushHeaders()
          })
          return true
        },
        onData(chunk: Buffer) {
          written = true
          const flowing = response.write(chunk)
          observed?.chunk(chunk)
          return flowing
        },
        onComplete() {
          written = true
          end('complete')
          response.end()
        },
        onError(error: Error) {
          if (over) return
          const known = toTransportError(error, NEVER)
          end(known instanceof TransportError && known.timeout !== undefined ? 'timeout' : 'transport')
          const tooLarge = findTooLarge(error)
          if (response.headersSent) response.destroy()
          else if (tooLarge)
            refuse(response, to.dialect, traceId, [...own, 'connection', 'close'], 'too_large', tooLarge.message)
          else refuse(response, to.dialect, traceId, own, 'upstream', unreachable(to.dialect))
        },
      })
    }

    if (length <= ONE_PIECE) collect(request, observed, send)
    else if (request.headers['transfer-encoding'] === undefined && Number.isNaN(length)) send(null)
    else send(watched(request, deps.maxBodyBytes, observed))
    return true
  }
}

function collect(
  request: IncomingMessage,
  observed: Observation | undefined,
  send: (body: Buffer | null) => void,
): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    if (body.length > 0) observed?.requestChunk(body)
    send(body.length > 0 ? body : null)
  })
}

function record(observed: Observation | undefined, how: ObservedEnd, { recorded }: DirectRelayDeps): void {
  if (!observed) return
  observed.ended(how)
  recorded?.(observed)
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
