import { EnvError } from '../../env/read-env.ts'
import { addressKind, carried } from './address-kind.ts'
import { inNetwork, readIp, readNetwork } from './ip-address.ts'
import { type Target, targetOf } from './outbound-rule.ts'

/** A forward proxy of the operator's network. */
export interface OutboundProxy {
  /** The variable that names it. */
  variable: string
  /** Its address without the name and password, for people. */
  address: string
  secure: boolean
  host: string
  port: number
  /** The value of `proxy-authorization`. */
  authorization: string | undefined
}

/** Which proxy a connection goes by, as the variables say that most programs read (docs/deploying.md). */
export interface Proxies {
  /** Undefined: straight. */
  of(target: Target & { protocol: string }): OutboundProxy | undefined
  ofUrl(url: URL): OutboundProxy | undefined
  all: readonly OutboundProxy[]
  /** What no log may show. */
  secrets: readonly string[]
}

type Vars = Readonly<Record<string, string | undefined>>

/** The small spelling counts where both are set, as for curl. */
const NAMES = { 'https:': ['https_proxy', 'HTTPS_PROXY'], 'http:': ['http_proxy', 'HTTP_PROXY'] } as const

/** What only this machine or its own link answers: a proxy would ask itself. */
const NEAR: ReadonlySet<string | undefined> = new Set(['loopback', 'link_local', 'metadata', 'unspecified'])
const NEAR_NAME = /(?:^|\.)localhost$|^metadata(?:\.google\.internal)?$/

/** Throws EnvError for an address that is none, without saying it: it may hold a password. */
export function outboundProxies(vars: Vars): Proxies {
  const read = { 'https:': readProxy(vars, NAMES['https:']), 'http:': readProxy(vars, NAMES['http:']) }
  const straight = (vars.no_proxy || vars.NO_PROXY || '').split(/[\s,]+/).flatMap(text => readException(text) ?? [])
  const of: Proxies['of'] = ({ protocol, host, port }) => {
    const proxy = protocol === 'https:' || protocol === 'http:' ? read[protocol]?.proxy : undefined
    if (proxy === undefined || NEAR.has(addressKind(host)) || NEAR_NAME.test(host)) return undefined
    return straight.some(excepts => excepts(host, port)) ? undefined : proxy
  }
  const found = [read['https:'], read['http:']].flatMap(one => one ?? [])
  return {
    of,
    ofUrl: url => of({ protocol: url.protocol, ...targetOf(url) }),
    all: found.map(({ proxy }) => proxy),
    secrets: found.flatMap(({ secrets }) => secrets),
  }
}

function readProxy(vars: Vars, names: readonly string[]) {
  const variable = names.find(name => vars[name])
  if (variable === undefined) return undefined
  const given = vars[variable]!.trim()
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`)
  if (url === null || url.hostname === '' || !/^https?:$/.test(url.protocol)) {
    throw new EnvError(
      `${variable}: expected the address of an HTTP proxy, such as http://proxy.example.com:3128, with name:password@ before the host where it asks for them`,
    )
  }
  const { username, password } = url
  const login = username === '' && password === '' ? undefined : `${decoded(username)}:${decoded(password)}`
  const basic = login === undefined ? undefined : base64(login)
  const secure = url.protocol === 'https:'
  const proxy: OutboundProxy = {
    variable,
    address: url.origin,
    secure,
    host: targetOf(url).host,
    port: targetOf(url).port,
    authorization: basic && `Basic ${basic}`,
  }
  return { proxy, secrets: basic === undefined ? [] : [basic, password, decoded(password)].filter(text => text !== '') }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/**
 * One part of NO_PROXY: `*`, a name that also stands for those below it (with or without `.` or `*.` before it), an address or a
 * network in CIDR form, each with or without a port. What is none of them excepts nothing.
 */
function readException(text: string): ((host: string, port: number) => boolean) | undefined {
  const given = text.toLowerCase()
  if (given === '') return undefined
  if (given === '*') return () => true
  const [, bracketed, bare, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(given) ?? []
  const only = digits === undefined ? undefined : Number(digits)
  const name = bracketed ?? bare ?? given
  const ofPort = (port: number) => only === undefined || only === port
  const network = readNetwork(name)
  if (network) {
    return (host, port) => {
      const address = readIp(host)
      if (address === undefined || !ofPort(port)) return false
      const inside = address.length === 16 ? carried(address) : undefined
      return [address, inside].some(one => one && inNetwork(one, network.network, network.bits))
    }
  }
  const plain = name.replace(/^\*?\./, '').replace(/\.$/, '')
  if (plain === '') return undefined
  return (host, port) => ofPort(port) && (host === plain || host.endsWith(`.${plain}`))
}
