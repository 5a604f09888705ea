import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { Agent, buildConnector, Dispatcher } from 'undici'
import { ProxyError } from '../http/outbound/bounded-body.ts'
import type { Target } from '../http/outbound/outbound-rule.ts'
import { type OutboundProxy, outboundProxies, type Proxies } from '../http/outbound/proxies.ts'

const CONNECT_MS = 10_000

const authorityOf = ({ host, port }: Target) => `${host.includes(':') ? `[${host}]` : host}:${port}`

/**
 * A connection to a far end through a proxy, before anything is encrypted in it. The far end is named as it was called: a proxy
 * decides by names, and resolves them.
 */
export function openTunnel(proxy: OutboundProxy, target: Target, connectMs = CONNECT_MS): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const authority = authorityOf(target)
    const asked: ClientRequest = (proxy.secure ? httpsRequest : httpRequest)({
      host: proxy.host,
      port: proxy.port,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(proxy.authorization && { 'proxy-authorization': proxy.authorization }) },
      // A connection of its own, also where the process has a way out of its own for every other one.
      agent: false,
    })
    const fail = (words: string) => {
      clearTimeout(timer)
      asked.destroy()
      reject(new ProxyError(words))
    }
    const timer = setTimeout(() => {
      fail(`${named(proxy)} did not answer within ${connectMs / 1000} s: check that it is reachable from here`)
    }, connectMs)
    asked.once('connect', (answer: IncomingMessage, socket: Socket, head: Buffer) => {
      const status = answer.statusCode ?? 0
      if (status < 200 || status > 299) {
        socket.destroy()
        return fail(refusal(proxy, status, authority, challengeOf(answer.rawHeaders)))
      }
      clearTimeout(timer)
      if (head.length > 0) socket.unshift(head)
      socket.setNoDelay(true).setKeepAlive(true, 60_000)
      // One that breaks off before it is used is noticed when it is.
      socket.on('error', () => undefined)
      resolve(socket)
    })
    // Some refuse with an answer like any other.
    asked.once('response', answer => {
      fail(refusal(proxy, answer.statusCode ?? 0, authority, challengeOf(answer.rawHeaders)))
    })
    asked.once('error', error => fail(unusable(proxy, error)))
    asked.end()
  })
}

const named = ({ variable }: OutboundProxy) => `the proxy that ${variable} names`

function refusal(proxy: OutboundProxy, status: number, authority: string, challenge: string): string {
  const { authorization, variable } = proxy
  if (status === 407) {
    const schemes = schemesOf(challenge)
    if (schemes.length > 0 && !schemes.some(scheme => scheme.toLowerCase() === 'basic')) {
      return `${named(proxy)} takes a login by ${schemes.join(' or ')} alone (407), and only Basic is supported: have it take Basic from this machine, or let it out without a login`
    }
    return authorization === undefined
      ? `${named(proxy)} asks for a name and password (407): put them before its host, as in http://name:password@host:port`
      : `${named(proxy)} does not accept the name and password in it (407): check ${variable}`
  }
  if (status === 403 || status === 405) {
    return `${named(proxy)} does not let connections to ${authority} out (${status}): have its rules opened for this address and port, or name the host in NO_PROXY`
  }
  if (status >= 500) return `${named(proxy)} cannot reach ${authority} itself (${status}): its log says why`
  return `${named(proxy)} answered CONNECT ${authority} with ${status}: check that it is a forward proxy`
}

/** The values of `proxy-authenticate`, of headers as a list of names and values in turn or as an object. */
function challengeOf(headers: Dispatcher.DispatchOptions['headers'] | Buffer[]): string {
  const list = flatHeaders(headers)
  return list.filter((_, at) => at % 2 === 1 && list[at - 1]?.toLowerCase() === 'proxy-authenticate').join(', ')
}

/** Ways to log in that a challenge offers; a word before `=` is a parameter of the one before it. */
const schemesOf = (challenge: string) =>
  Array.from(challenge.matchAll(/(?:^|,)\s*([a-z][a-z0-9-]*)(?=\s*(?:,|$)|\s+[^\s=,])/gi), ([, scheme]) => scheme!)

function unusable(proxy: OutboundProxy, error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : ''
  return `${named(proxy)} cannot be used${code}: check ${proxy.variable} and that it is reachable from here`
}

/** What broke between the answer of a proxy and a connection that can be used. */
function brokeOff(proxy: OutboundProxy, target: Target, error: Error): ProxyError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.message
  const words = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/.test(code)
    ? `the certificate that ${authorityOf(target)} shows through ${named(proxy)} is not trusted (${code}): where the proxy opens what is encrypted, name its authority in NODE_EXTRA_CA_CERTS`
    : `${named(proxy)} let the connection to ${authorityOf(target)} out, and it ended before it was encrypted (${code})`
  return new ProxyError(words)
}

/** Connections to where the options of undici's connector say, each through the tunnel of its proxy. */
function tunnelConnector(proxies: Proxies, connectMs: number): buildConnector.connector {
  const encrypt = buildConnector({ timeout: connectMs })
  return (options, done) => {
    const { protocol, hostname, port } = options
    const target = { host: hostname.toLowerCase(), port: Number(port || (protocol === 'https:' ? 443 : 80)) }
    const proxy = proxies.of({ protocol, ...target })!
    openTunnel(proxy, target, connectMs).then(
      socket =>
        encrypt({ ...options, httpSocket: socket }, (...made) => {
          if (made[0] === null) return done(...made)
          socket.destroy()
          done(brokeOff(proxy, target, made[0]), null)
        }),
      (error: Error) => done(error, null),
    )
  }
}

/** Connections to the proxies themselves, for what is asked of them in the clear. */
function plainConnector(proxies: Proxies, connectMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: connectMs })
  return (options, done) =>
    connect(options, (...made) => {
      // The last is the one for plain http: both variables may name the same.
      const proxy = proxies.all.findLast(({ address }) => address === `${options.protocol}//${options.host}`)
      if (made[0] === null || proxy === undefined) return done(...made)
      done(new ProxyError(unusable(proxy, made[0])), null)
    })
}

/**
 * The pool of connections of a host whose network has proxies: what is encrypted goes through a tunnel, plain http is asked of the
 * proxy with its whole address, and what the variables except goes straight, as the options say.
 */
export class ProxyAgent extends Dispatcher {
  readonly #proxies: Proxies
  readonly #straight: Agent
  readonly #tunnels: Agent
  readonly #plain: Agent
  /** By origin: an upstream is asked at the same few. */
  readonly #known = new Map<string, { proxy: OutboundProxy | undefined; host: string }>()

  constructor(proxies: Proxies, options: Agent.Options, connectMs = CONNECT_MS) {
    super()
    this.#proxies = proxies
    this.#straight = new Agent(options)
    this.#tunnels = new Agent({ ...options, connect: tunnelConnector(proxies, connectMs) })
    this.#plain = new Agent({ ...options, connect: plainConnector(proxies, connectMs) })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const origin = String(options.origin)
    const { proxy, host } = this.#routeOf(origin)
    if (proxy === undefined) return this.#straight.dispatch(options, handler)
    if (origin.startsWith('https:')) return this.#tunnels.dispatch(options, handler)
    const extra = ['host', host, ...(proxy.authorization ? ['proxy-authorization', proxy.authorization] : [])]
    const asked = {
      ...options,
      origin: proxy.address,
      path: origin + options.path,
      headers: [...flatHeaders(options.headers), ...extra],
    }
    return this.#plain.dispatch(asked, refusing(proxy, host, handler))
  }

  #routeOf(origin: string) {
    const known = this.#known.get(origin)
    if (known) return known
    const url = new URL(origin)
    const made = { proxy: this.#proxies.ofUrl(url), host: url.host }
    if (this.#known.size >= 1000) this.#known.clear()
    this.#known.set(origin, made)
    return made
  }

  override async close(): Promise<void> {
    await Promise.all([this.#straight.close(), this.#tunnels.close(), this.#plain.close()])
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#straight.destroy(), this.#tunnels.destroy(), this.#plain.destroy()])
  }
}

/** Names and values in turn, without what the proxy gets from us. */
function flatHeaders(headers: Dispatcher.DispatchOptions['headers'] | Buffer[]): string[] {
  const list: string[] = []
  const add = (name: string, value: unknown) => {
    if (!/^(?:host|proxy-authorization)$/i.test(name)) list.push(name, String(value))
  }
  if (Array.isArray(headers)) {
    for (let at = 0; at + 1 < headers.length; at += 2) add(String(headers[at]), headers[at + 1])
  } else if (headers && Symbol.iterator in headers) {
    for (const [name, value] of headers) for (const one of [value].flat()) add(name, one)
  } else {
    for (const [name, value] of Object.entries(headers ?? {})) for (const one of [value].flat()) add(name, one)
  }
  return list
}

/** A 407 is the proxy's own word, whatever was asked of it. */
function refusing(proxy: OutboundProxy, authority: string, handler: Dispatcher.DispatchHandler) {
  const refused = (headers: Parameters<typeof challengeOf>[0]) =>
    new ProxyError(refusal(proxy, 407, authority, challengeOf(headers)))
  let abort: ((error?: Error) => void) | undefined
  const own: Dispatcher.DispatchHandler = {
    onConnect(cut, ...more) {
      abort = cut
      handler.onConnect?.(cut, ...more)
    },
    onHeaders(status, headers, ...more) {
      if (status !== 407) return handler.onHeaders?.(status, headers, ...more) ?? true
      abort?.(refused(headers))
      return false
    },
    onResponseStart(controller, status, headers, ...more) {
      if (status === 407) controller.abort(refused(headers))
      else handler.onResponseStart?.(controller, status, headers, ...more)
    },
  }
  return new Proxy(handler, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return Reflect.get(own, name) ?? value.bind(target)
    },
  })
}

/** What a process goes out by, where its variables name a proxy. */
export interface Network extends Proxies {
  /** The host's own `fetch`, by them: for addresses of the operator. */
  fetch: typeof fetch
}

export function networkOf(vars: Readonly<Record<string, string | undefined>>): Network {
  const proxies = outboundProxies(vars)
  return { ...proxies, fetch: proxiedFetch(proxies) }
}

/** For an operator: by which proxies a process goes, without their names and passwords. */
export function networkWords(vars: Readonly<Record<string, string | undefined>>): string {
  const { all } = outboundProxies(vars)
  const ways = all.map(({ variable, address, authorization }) => {
    const scheme = variable.toLowerCase().startsWith('https') ? 'https' : 'http'
    return `${scheme} by ${address} (${variable}${authorization === undefined ? '' : ', with a login'})`
  })
  const straight = vars.no_proxy || vars.NO_PROXY
  return `${ways.join(', ')}; straight to this machine${straight ? ` and to ${straight}` : ', and NO_PROXY excepts nothing else'}`
}

function proxiedFetch(proxies: Proxies): typeof fetch {
  const dispatcher = new ProxyAgent(proxies, { pipelining: 1 })
  const fetchBy = fetch as (
    input: Parameters<typeof fetch>[0],
    init: RequestInit & { dispatcher: unknown },
  ) => Promise<Response>
  return (input, init) => fetchBy(input, { ...init, dispatcher })
}
