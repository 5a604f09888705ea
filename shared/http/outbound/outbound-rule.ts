import { type AddressKind, addressKind } from './address-kind.ts'
import { type AllowEntry, namedBy } from './allow-list.ts'

export interface Target {
  /** A name in lower case without a last dot, or an address without brackets. */
  host: string
  port: number
}

/** Nothing legitimate is ever called there, so no entry opens them. */
const NEVER: ReadonlySet<AddressKind> = new Set(['unspecified', 'multicast', 'broadcast'])
/** A name may come to point there without the operator's doing, so only an entry with the address itself opens them. */
const BY_ADDRESS: ReadonlySet<AddressKind> = new Set(['link_local', 'metadata'])

/** Names that by their own registries are never of the public internet. */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa)$/

export type OutboundRule = ReturnType<typeof outboundRule>

/**
 * Which addresses this service may call (docs/spec/runtime.md §8): public ones, and of the others those that the operator's
 * list names. Every answer is undefined, or the sentence that says why not.
 */
export function outboundRule(allow: readonly AllowEntry[] = []) {
  return {
    /** What can be said of a URL before its name is resolved. */
    url(url: URL): string | undefined {
      if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${url.protocol} addresses cannot be called`
      if (url.username !== '' || url.password !== '') return 'an address with a user or password cannot be called'
      const target = targetOf(url)
      if (addressKind(target.host) !== undefined) return refusal(target, target.host)
      return undefined
    },
    /** For hosts that cannot see what a name resolves to: refuses names that can only be private ones. */
    name(url: URL): string | undefined {
      const target = targetOf(url)
      if (!LOCAL_NAME.test(target.host) && target.host.includes('.')) return undefined
      if (addressKind(target.host) !== undefined) return undefined
      if (namedBy(allow, { ...target, address: undefined }) !== 'no') return undefined
      return `${target.host} is a name of a private network; ${howToOpen(target)}`
    },
    /** One of the addresses that the host of a URL stands for. */
    address: refusal,
  }

  function refusal({ host, port }: Target, address: string): string | undefined {
    const kind = addressKind(address)
    if (kind === 'public') return undefined
    // What a name stands for in the operator's network is not disclosed to an author of agents.
    const leads = host === address ? `${host} is` : `${host} leads to`
    if (kind === undefined) return `${leads} no address`
    const what = `${leads} a ${kind.replaceAll('_', '-')} address`
    if (NEVER.has(kind)) return `${what} and is never called`
    const named = namedBy(allow, { host, port, address })
    if (named === 'address' || (named === 'name' && !BY_ADDRESS.has(kind))) return undefined
    return BY_ADDRESS.has(kind)
      ? `${what}; only an entry of PLATFORM_OUTBOUND_ALLOW that says the address itself opens it`
      : `${what}; ${howToOpen({ host, port })}`
  }
}

const howToOpen = ({ host, port }: Target) =>
  `an operator can open it with the entry ${host.includes(':') ? `[${host}]` : host}:${port} in PLATFORM_OUTBOUND_ALLOW`

export function targetOf(url: URL): Target {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return { host: host.toLowerCase(), port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)) }
}
