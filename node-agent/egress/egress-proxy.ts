import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Egress } from '../../runtime/execution/sandbox/sandboxes.ts'
import { egressProblem } from '../../runtime/execution/tools/egress.ts'
import {
  checkedAddresses,
  checkForProxy,
  type Resolved,
  type ResolveHost,
  resolveHost,
} from '../../shared/host/resolve-host.ts'
import { OutboundDenied, ProxyError } from '../../shared/http/outbound/bounded-body.ts'
import { type OutboundRule, targetOf } from '../../shared/http/outbound/outbound-rule.ts'
import type { Proxies } from '../../shared/http/outbound/proxies.ts'
import type { Log } from '../../shared/log/log.ts'
import type { ReachedPlaces } from './reached.ts'

export interface EgressProxyOptions {
  egress: Egress
  /** Of the operator: private addresses stay closed whatever a manifest says. */
  rule: OutboundRule
  resolve?: ResolveHost
  connectMs?: number
  log?: Log
  /** Of the sandbox that this proxy is the way out of. */
  places?: ReachedPlaces
  /** Of the network of this node: what the rules let out goes by them. */
  proxies?: Proxies | undefined
  /** Of one sandbox. Each is an entry in a log, so there is an end to them. */
  maxDecisions?: number
}

/** Of one hop, and not of the call (RFC 9110 §7.6.1). */
const OF_A_HOP = new Set(
  'connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
)

/**
 * The one way out of a sandbox, at the host's end of its channel: an HTTP proxy that lets through what the manifest's egress
 * rules name, and nothing else. Every decision is reported before it takes effect.
 */
export function egressProxy(options: EgressProxyOptions): (stream: Duplex) => void {
  const { egress, rule, resolve = resolveHost, connectMs = 10_000, maxDecisions = 1000, log, places, proxies } = options
  let decisions = 0

  async function reachable(url: URL, method: string): Promise<readonly Resolved[]> {
    const problem = egressProblem(egress.rules, url, method) ?? rule.url(url)
    if (problem !== undefined) {
      const hidden = method === 'CONNECT' ? ' (what is encrypted hides its method: a rule for it names no methods)' : ''
      throw new OutboundDenied(problem.includes('allow CONNECT') ? problem + hidden : problem)
    }
    const target = targetOf(url)
    if (proxies?.ofUrl(url)) {
      await checkForProxy(rule, resolve, url, log)
      return []
    }
    const family = isIP(target.host)
    if (family !== 0) return [{ address: target.host, family: family === 6 ? 6 : 4 }]
    return checkedAddresses(rule, resolve, target, log)
  }

  /** The address to connect to, of a proxy undefined; throws OutboundDenied, once the refusal is on record. */
  async function decide(url: URL, method: string): Promise<string | undefined> {
    if (++decisions > maxDecisions) throw new OutboundDenied(`this sandbox has made ${maxDecisions} calls`)
    const { host, port } = targetOf(url)
    try {
      const [first] = await reachable(url, method)
      await egress.decided({ allowed: true, method, host, port })
      return first?.address
    } catch (error) {
      if (error instanceof OutboundDenied) {
        places?.refused({ host, port })
        await egress.decided({ allowed: false, method, host, port, reason: error.message })
      }
      throw error
    }
  }

  async function tunnel(request: IncomingMessage, guest: Duplex, head: Buffer): Promise<void> {
    guest.on('error', () => undefined)
    try {
      if (!URL.canParse(`https://${request.url}`)) throw new OutboundDenied('CONNECT needs a host and a port')
      const url = new URL(`https://${request.url}`)
      const address = await decide(url, 'CONNECT')
      const proxy = proxies?.ofUrl(url)
      const remote = proxy
        ? await (await import('../../shared/host/proxy-agent.ts')).openTunnel(proxy, targetOf(url), connectMs)
        : await connected(address!, targetOf(url).port, connectMs)
      places?.connected(destinationOf(url, address), remote)
      remote.setTimeout(0)
      guest.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      if (head.length > 0) remote.write(head)
      await Promise.allSettled([pipeline(guest, remote), pipeline(remote, guest)])
    } catch (error) {
      const { status, text } = refusal(error)
      guest.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
      )
    }
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { method = 'GET', url: said = '' } = request
      if (!/^http:\/\//i.test(said) || !URL.canParse(said)) {
        throw new OutboundDenied('this is a proxy: send the whole http address, or CONNECT for https')
      }
      const url = new URL(said)
      const framing = framingOf(request.headers)
      const address = await decide(url, method)
      const proxy = proxies?.ofUrl(url)
      const path = url.pathname + url.search
      const remote = (proxy?.secure ? httpsRequest : httpRequest)({
        host: proxy?.host ?? address,
        port: proxy?.port ?? targetOf(url).port,
        method,
        path: proxy ? url.origin + path : path,
        timeout: connectMs,
        headers: {
          ...withoutHop(request.headers),
          ...framing,
          host: url.host,
          ...(proxy?.authorization && { 'proxy-authorization': proxy.authorization }),
        },
        // A connection that is kept would outlive the decision about it.
        agent: false,
      })
      remote.once('timeout', () => remote.destroy(new Error('no answer came in time')))
      remote.once('socket', socket => {
        socket.once('connect', () => places?.connected(destinationOf(url, address), socket))
      })
      const answered = new Promise<IncomingMessage>((done, failed) => {
        remote.once('response', done)
        remote.once('error', failed)
        remote.once('upgrade', (_, socket) => {
          socket.destroy()
          failed(new Error('the far end switched to another protocol, which this proxy does not carry: use CONNECT'))
        })
      })
      const [answer] = await Promise.all([answered, pipeline(request, remote)])
      if (proxy && answer.statusCode === 407) {
        answer.destroy()
        throw new ProxyError(`the proxy that ${proxy.variable} names asks this node for a name and password`)
      }
      response.writeHead(answer.statusCode ?? 502, withoutHop(answer.headers))
      await pipeline(answer, response)
    } catch (error) {
      const { status, text } = refusal(error)
      if (response.headersSent) response.destroy()
      else response.writeHead(status, { 'content-type': 'text/plain' }).end(text)
    }
  }

  const server = createServer({ maxHeaderSize: 16_384 })
  server.on('request', (request, response) => void forward(request, response))
  server.on('connect', (request, guest, head) => void tunnel(request, guest, head))
  return stream => void server.emit('connection', stream)
}

const destinationOf = (url: URL, address: string | undefined) => ({
  ...targetOf(url),
  ...(address !== undefined && { address }),
})

async function connected(host: string, port: number, timeout: number): Promise<Socket> {
  const remote = connect({ host, port, timeout })
  await new Promise<void>((done, failed) => {
    remote.once('connect', done)
    remote.once('error', failed)
    remote.once('timeout', () => remote.destroy(new Error('no answer came in time')))
  })
  return remote
}

/**
 * How the far end knows where the body ends. The client of Node says so by itself for some methods only, and what it wrote after the
 * head of another would be a request of its own there, which no rule has seen. The server has refused what says it twice.
 */
function framingOf(headers: IncomingMessage['headers']): Record<string, string> {
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  if (coding === undefined) return length === undefined ? {} : { 'content-length': length }
  if (coding.toLowerCase() === 'chunked') return { 'transfer-encoding': 'chunked' }
  throw new OutboundDenied('this proxy takes no transfer-encoding but chunked')
}

function refusal(error: unknown): { status: number; text: string } {
  const why = error instanceof Error ? error.message : String(error)
  return error instanceof OutboundDenied ? { status: 403, text: `${why}\n` } : { status: 502, text: `${why}\n` }
}

function withoutHop(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const named = new Set(
    String(headers.connection ?? '')
      .split(',')
      .map(name => name.trim().toLowerCase()),
  )
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || OF_A_HOP.has(name) || named.has(name) ? [] : [[name, value]],
    ),
  )
}
