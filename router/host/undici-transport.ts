import type { Dispatcher } from 'undici'
import errors from 'undici/lib/core/errors.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import type { Network } from '../../shared/host/proxy-agent.ts'
import {
  type AnswerSink,
  type HeaderList,
  type Timeouts,
  type Transport,
  TransportError,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream/transport.ts'
import { type IncomingBody, incomingBody } from './incoming-body.ts'

/** Connections kept to one upstream; further calls wait in its queue. */
const CONNECTIONS = 512

const poolOf = ({ connectMs }: Pick<Timeouts, 'connectMs'>): Agent.Options => ({
  connections: CONNECTIONS,
  // Calls to models are not idempotent: one request on a connection at a time, and never sent twice.
  pipelining: 1,
  connect: { timeout: connectMs },
  keepAliveTimeout: 30_000,
})

/** The transport of Node: a connection pool per upstream; bodies stay as the upstream encoded them. */
export function undiciTransport(limits: Pick<Timeouts, 'connectMs'>): Required<Transport> {
  return transportOver(new Agent(poolOf(limits)))
}

/** The same by the proxies of this network, where its variables name one. */
export async function networkTransport(
  limits: Pick<Timeouts, 'connectMs'>,
  network: Network | undefined,
): Promise<Required<Transport>> {
  if (!network) return undiciTransport(limits)
  const { ProxyAgent } = await import('../../shared/host/proxy-agent.ts')
  return transportOver(new ProxyAgent(network, poolOf(limits), limits.connectMs))
}

function transportOver(agent: Dispatcher): Required<Transport> {
  return {
    send: request => send(agent, request),
    relay: (request, sink) => relay(agent, request, sink),
    close: () => agent.destroy(),
  }
}

function send(agent: Dispatcher, { signal, ...request }: UpstreamRequest): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    let incoming: IncomingBody | undefined
    const over = () => signal.removeEventListener('abort', aborted)
    const aborted = () => stop(signal.reason)
    signal.addEventListener('abort', aborted, { once: true })
    const stop = relay(agent, request, {
      head(answer, resume) {
        incoming = incomingBody(resume, () => stop(undefined))
        resolve({ ...answer, body: incoming.chunks })
      },
      chunk: bytes => incoming?.push(bytes) ?? true,
      end() {
        over()
        incoming?.end()
      },
      fail(error) {
        over()
        if (incoming) incoming.fail(error)
        else reject(error)
      },
    })
  })
}

function relay(
  agent: Dispatcher,
  { method, url, headers, body, timeouts }: Omit<UpstreamRequest, 'signal'>,
  sink: AnswerSink,
): (error: unknown) => void {
  const { origin, path } = splitAddress(url)
  let cut: ((error?: Error) => void) | undefined
  /** `told`: the sink knows. A pool hears of a call that is given up only once it has a connection for it, and then sends nothing. */
  let stop: { error: unknown; told: boolean } | undefined
  let status: number | null = null
  const options: Dispatcher.DispatchOptions = {
    origin,
    path,
    method: method as Dispatcher.HttpMethod,
    headers: headers.flat(),
    body: body as Dispatcher.DispatchOptions['body'],
    headersTimeout: timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
  }
  agent.dispatch(options, {
    onConnect(abort: (error?: Error) => void) {
      cut = abort
      if (stop) abort()
    },
    onHeaders(code: number, raw: Buffer[], resume: () => void) {
      if (code < 200) return true
      status = code
      sink.head({ status: code, headers: pairs(raw), rawEncoding: true }, resume)
      return true
    },
    // A parser that is resumed reports an empty piece first; a sink that wants only one piece would pause it again, for ever.
    onData: (chunk: Buffer) => chunk.length === 0 || sink.chunk(chunk),
    onComplete: () => sink.end(),
    onError(error: Error) {
      if (stop?.told) return
      const given = stop?.error
      stop = { error, told: true }
      if (isWholeWithoutBody(status, error)) sink.end()
      else sink.fail(given ?? toTransportError(error))
    },
  })
  return error => {
    if (stop) return
    stop = { error, told: cut === undefined }
    if (cut) cut()
    else sink.fail(error)
  }
}

/** An upstream is asked at the same few addresses, and taking one apart costs as much as a header list. */
const split = new Map<string, { origin: string; path: string }>()
const MAX_SPLIT = 100

function splitAddress(url: string): { origin: string; path: string } {
  const known = split.get(url)
  if (known !== undefined) return known
  const { origin, pathname, search } = new URL(url)
  const made = { origin, path: pathname + search }
  if (split.size >= MAX_SPLIT) split.clear()
  split.set(url, made)
  return made
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

/** A 304 may name the length of what it does not send, and the pool counts that as missing. */
function isWholeWithoutBody(status: number | null, error: Error): boolean {
  return status === 304 && error instanceof errors.ResponseContentLengthMismatchError
}

/** What a pool error means. */
function toTransportError(error: unknown): unknown {
  if (error instanceof TransportError) return error
  const cause = { cause: error }
  if (error instanceof Error && error.name === 'ProxyError')
    return new TransportError(error.message, { ...cause, byProxy: true })
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
