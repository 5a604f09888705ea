import { type IpBytes, inNetwork, readIp, readNetwork } from './outbound/ip-address.ts'

/** Proxies whose word about who called them is taken. */
export type TrustedProxies = readonly { network: IpBytes; bits: number }[]

/** A comma list of addresses and networks in CIDR form; what is neither is given back as the fault. */
export function readProxies(text: string): { proxies: TrustedProxies; fault?: string } {
  const proxies: { network: IpBytes; bits: number }[] = []
  for (const part of text.split(',').map(one => one.trim())) {
    if (part === '') continue
    const network = readNetwork(part)
    if (network === undefined) return { proxies: [], fault: part }
    proxies.push(network)
  }
  return { proxies }
}

/**
 * Who called: the socket's address, or, where that is a trusted proxy, the last address in `x-forwarded-for` that is none. Each proxy
 * appends whom it saw, so only what trusted ones appended is read; what stands to the left of it is the caller's own invention.
 */
export function callerAddress(
  socket: string | undefined,
  forwardedFor: string | null,
  trusted: TrustedProxies,
): string | undefined {
  // By default none is, and nothing is read.
  if (trusted.length === 0) return socket
  const hops = forwardedFor === null ? [] : forwardedFor.split(',').map(hop => hop.trim())
  let caller = socket
  while (caller !== undefined && isTrusted(caller, trusted)) {
    const before = hops.pop()
    if (before === undefined || readIp(before) === undefined) break
    caller = before
  }
  return caller
}

/** Whom the tries from an address count against: IPv6 gives each subscriber a network of /64 at least, whose addresses count as one. */
export function callerNetwork(address: string): string {
  const bytes = readIp(address)
  if (bytes?.length !== 16) return address
  return isMapped(bytes) ? bytes.slice(12).join('.') : `${bytes.slice(0, 8).join('.')}/64`
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  const bytes = readIp(address)
  if (bytes === undefined) return false
  // A socket that takes both families shows IPv4 callers in IPv6 clothes.
  const plain = bytes.length === 16 && isMapped(bytes) ? bytes.slice(12) : bytes
  return trusted.some(({ network, bits }) => inNetwork(plain, network, bits) || inNetwork(bytes, network, bits))
}

const isMapped = (bytes: IpBytes) => bytes.slice(0, 12).every((byte, at) => byte === (at < 10 ? 0 : 0xff))

/** The origin of a web page, as browsers send it; undefined for anything else, a wildcard among it. */
export function readOrigin(text: string): string | undefined {
  if (!URL.canParse(text) || text.includes('*')) return undefined
  const { origin, protocol } = new URL(text)
  return /^https?:$/.test(protocol) && origin === text.replace(/\/$/, '').toLowerCase() ? origin : undefined
}
