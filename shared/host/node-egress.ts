import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import { OutboundDenied } from '../http/outbound/bounded-body.ts'
import { type EgressClient, guardedFetch, type Send } from '../http/outbound/egress-client.ts'
import { type OutboundRule, type Target, targetOf } from '../http/outbound/outbound-rule.ts'
import type { Proxies } from '../http/outbound/proxies.ts'
import type { Log } from '../log/log.ts'
import { nextTurn } from '../time/sleep.ts'
import { unlessAborted } from '../time/until-aborted.ts'
import { checkedAddresses, checkForProxy, type Resolved, type ResolveHost, resolveHost } from './resolve-host.ts'

export interface NodeEgressOptions {
  rule: OutboundRule
  resolve?: ResolveHost
  connectMs?: number
  log?: Log
  /** Of this network, where its variables name one. */
  proxies?: Proxies | undefined
}

/** Open connections to one origin; further calls wait for one. */
const CONNECTIONS = 256
/** Of a piece of an answer, after which others have their turn. */
const LARGE_PIECE = 16 * 1024
const NO_BODY = new Set([204, 205, 304])

/**
 * The way out on Node. For every connection the name is resolved once, all of its addresses must be ones that may be called,
 * and the socket is opened to exactly these: an answer of the name server that changes a moment later is never asked for.
 */
export function nodeEgress({
  rule,
  resolve = resolveHost,
  connectMs = 10_000,
  log,
  proxies,
}: NodeEgressOptions): EgressClient {
  let started: Promise<{ send: Send; close(): Promise<void> }> | undefined

  const addressesOf = (target: Target) => checkedAddresses(rule, resolve, target, log)

  // Loaded at the first call: a service that calls no host does not pay for the client.
  const client = () => (started ??= startClient(addressesOf, connectMs, proxies))

  return {
    fetch: guardedFetch(rule, async (url, init) => {
      // A connection by a proxy is made to the name, so that this process has no address to hold it to.
      if (proxies?.ofUrl(url)) await checkForProxy(rule, resolve, url, log)
      return (await client()).send(url, init)
    }),
    async problem(url) {
      const problem = rule.url(url)
      const target = targetOf(url)
      if (problem !== undefined || isIP(target.host) !== 0) return problem
      try {
        if (proxies?.ofUrl(url)) await checkForProxy(rule, resolve, url, log)
        else await addressesOf(target)
        return undefined
      } catch (error) {
        // A name that does not resolve today may tomorrow; the call itself will say so.
        return error instanceof OutboundDenied ? error.message : undefined
      }
    },
    async close() {
      await (await started)?.close()
    },
  }
}

async function startClient(
  addressesOf: (target: Target) => Promise<readonly Resolved[]>,
  connectMs: number,
  proxies: Proxies | undefined,
) {
  const { Agent: Pool, buildConnector } = await import('undici')

  /** A connector for one connection: it knows the addresses that were checked, and resolves no others. */
  const connectTo = (found: readonly Resolved[]): buildConnector.connector => {
    const lookup: LookupFunction = (_host, { all }, done) =>
      all ? done(null, [...found]) : done(null, found[0]!.address, found[0]!.family)
    return buildConnector({ timeout: connectMs, lookup })
  }

  const connect: buildConnector.connector = (options, done) => {
    const { hostname, port, protocol } = options
    if (isIP(hostname) !== 0) {
      connectTo([])(options, done)
      return
    }
    const target = { host: hostname.replace(/\.$/, '').toLowerCase(), port: portOf(port, protocol) }
    addressesOf(target).then(
      found => connectTo(found)(options, done),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), null),
    )
  }

  const pool: Agent.Options = { connect, connections: CONNECTIONS, pipelining: 1, keepAliveTimeout: 10_000 }
  const agent = proxies ? new (await import('./proxy-agent.ts')).ProxyAgent(proxies, pool, connectMs) : new Pool(pool)

  const send: Send = async (url, { method = 'GET', headers = {}, body, signal }) => {
    const ask = () =>
      agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: method as Dispatcher.HttpMethod,
        headers: { ...lowered(headers), 'accept-encoding': 'identity' },
        body: body ?? null,
        // Deadlines are the caller's, who knows how long an answer may take.
        signal,
        headersTimeout: 0,
        bodyTimeout: 0,
      })
    // The pool hears of an abort only once it has a connection for the call, and then sends nothing.
    return toResponse(await unlessAborted(signal, ask))
  }
  return { send, close: () => agent.destroy() }
}

function portOf(port: string, protocol: string): number {
  return Number(port || (protocol === 'https:' ? 443 : 80))
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function toResponse({ statusCode, headers, body }: Dispatcher.ResponseData): Response {
  const list = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) list.append(name, one)
  }
  const status = statusCode >= 200 && statusCode <= 599 ? statusCode : 502
  if (NO_BODY.has(status)) {
    body.resume()
    return new Response(null, { status, headers: list })
  }
  return new Response(decoded(readableOf(body), list), { status, headers: list })
}

/**
 * In place of `Readable.toWeb`, whose stream throws an uncaught exception when it is cancelled with bytes on the way: any server whose
 * answer is not read to its end would end the process.
 */
function readableOf(body: Readable): ReadableStream<Uint8Array<ArrayBuffer>> {
  const chunks: AsyncIterator<Buffer<ArrayBuffer>> = body[Symbol.asyncIterator]()
  let large = false
  // An error reaches the next read; without a listener that of a cancelled stream would end the process.
  body.on('error', () => undefined)
  return new ReadableStream(
    {
      async pull(controller) {
        // The reader works on a piece as soon as it comes: a far end that sends as fast as it can would leave no turn to other callers.
        if (large) await new Promise<void>(nextTurn)
        const { done, value } = await chunks.next()
        if (done) return controller.close()
        large = value.length >= LARGE_PIECE
        controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  )
}

/** We ask for plain bytes; a server that compresses all the same is read like `fetch` would. */
function decoded(raw: ReadableStream<Uint8Array<ArrayBuffer>>, headers: Headers): ReadableStream<Uint8Array> {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (encoding !== 'gzip' && encoding !== 'x-gzip' && encoding !== 'deflate') return raw
  headers.delete('content-encoding')
  headers.delete('content-length')
  return raw.pipeThrough(new DecompressionStream(encoding === 'deflate' ? 'deflate' : 'gzip'))
}
