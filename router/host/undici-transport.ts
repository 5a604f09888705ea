import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import request from 'undici/lib/api/api-request.js'
import errors from 'undici/lib/core/errors.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import { type HeaderList, type Timeouts, type Transport, TransportError } from '../upstream/transport.ts'

/** Connections kept to one upstream; further calls wait in its queue. */
const CONNECTIONS = 512

export interface PooledTransport extends Transport {
  /** The pool itself, for a relay that works on sockets and buffers alone. */
  readonly agent: Dispatcher
}

/** The transport of Node: a connection pool per upstream; bodies stay as the upstream encoded them. */
export function undiciTransport({ connectMs }: Pick<Timeouts, 'connectMs'>): PooledTransport {
  const agent = new Agent({
    connections: CONNECTIONS,
    // Calls to models are not idempotent: one request on a connection at a time, and never sent twice.
    pipelining: 1,
    connect: { timeout: connectMs },
    keepAliveTimeout: 30_000,
  })
  return {
    agent,
    async send({ method, url, headers, body, signal, timeouts }) {
      try {
        const {
          statusCode,
          headers: answered,
          body: stream,
        } = await request.call(agent, {
          origin: new URL(url).origin,
          path: url.slice(new URL(url).origin.length) || '/',
          method: method as Dispatcher.HttpMethod,
          headers: headers.flat(),
          body: body === null || body instanceof Uint8Array ? body : Readable.from(body, { objectMode: false }),
          headersTimeout: timeouts.firstByteMs,
          bodyTimeout: timeouts.idleMs,
          signal,
          responseHeaders: 'raw',
        })
        return {
          status: statusCode,
          headers: pairs(answered as unknown as string[]),
          body: chunks(stream, signal),
          rawEncoding: true,
        }
      } catch (error) {
        throw toTransportError(error, signal)
      }
    },
    close: () => agent.destroy(),
  }
}

async function* chunks(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncIterable<Uint8Array> {
  try {
    yield* stream
  } catch (error) {
    throw toTransportError(error, signal)
  }
}

/** Raw header lines, name and value in turn, as pairs. */
export function pairs(raw: readonly (string | Buffer)[]): HeaderList {
  const list: HeaderList = []
  for (let i = 0; i + 1 < raw.length; i += 2) list.push([latin1(raw[i]!), latin1(raw[i + 1]!)])
  return list
}

function latin1(text: string | Buffer): string {
  return typeof text === 'string' ? text : text.toString('latin1')
}

/** What a pool error means; an abort of the caller stays the caller's own reason. */
export function toTransportError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof TransportError) return error
  const cause = { cause: error }
  if (error instanceof errors.ConnectTimeoutError) {
    return new TransportError('the upstream did not accept a connection in time', { ...cause, timeout: 'connect' })
  }
  if (error instanceof errors.HeadersTimeoutError) {
    return new TransportError('the upstream sent no answer in time', { ...cause, timeout: 'first_byte' })
  }
  if (error instanceof errors.BodyTimeoutError) {
    return new TransportError('the upstream stopped in the middle of its answer', { ...cause, timeout: 'idle' })
  }
  return new TransportError('the upstream could not be reached', cause)
}
