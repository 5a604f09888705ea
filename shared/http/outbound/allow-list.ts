import { carried } from './address-kind.ts'
import { type IpBytes, inNetwork, readIp, readNetwork } from './ip-address.ts'

/** One entry of PLATFORM_OUTBOUND_ALLOW; without a port it opens all of them. */
export type AllowEntry =
  | { by: 'name'; host: string; port: number | undefined }
  | { by: 'network'; network: IpBytes; bits: number; port: number | undefined }

const NAME = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/
const WITH_PORT = /^(.*):(\d{1,5})$/

/**
 * Reads one entry: a name, `*.example.com` for every name below it, an address, a network in CIDR form, each with or
 * without `:port` (an IPv6 address in brackets then). Undefined when it is none of them; `*` alone opens nothing.
 */
export function readAllowEntry(text: string): AllowEntry | undefined {
  const given = text.trim().toLowerCase()
  const whole = readTarget(given, undefined)
  if (whole !== undefined) return whole
  const [, target = '', port = ''] = WITH_PORT.exec(given) ?? []
  return Number(port) >= 1 && Number(port) <= 65_535 ? readTarget(target, Number(port)) : undefined
}

function readTarget(text: string, port: number | undefined): AllowEntry | undefined {
  const bracketed = /^\[(.*)\](\/\d+)?$/.exec(text)
  // A bare IPv6 address with a port could be read in two ways.
  const plain = bracketed
    ? `${bracketed[1]}${bracketed[2] ?? ''}`
    : port !== undefined && text.includes(':')
      ? ''
      : text
  const found = readNetwork(plain)
  if (found) return { by: 'network', ...found, port }
  // Digits and dots alone are a broken address, not a name.
  if (bracketed || !NAME.test(text) || /^[\d.]+$/.test(text)) return undefined
  return { by: 'name', host: text, port }
}

/** How exactly an operator has named a target: by its address, by its name, or not at all. */
export type Named = 'address' | 'name' | 'no'

export function namedBy(
  entries: readonly AllowEntry[],
  target: { host: string; port: number; address: string | undefined },
): Named {
  const address = target.address === undefined ? undefined : readIp(target.address)
  const ofPort = entries.filter(({ port }) => port === undefined || port === target.port)
  if (address && ofPort.some(entry => entry.by === 'network' && holds(entry, address))) return 'address'
  return ofPort.some(entry => entry.by === 'name' && nameFits(entry.host, target.host)) ? 'name' : 'no'
}

/** An entry for an IPv4 network also opens the IPv6 spellings of its addresses. */
function holds({ network, bits }: { network: IpBytes; bits: number }, address: IpBytes): boolean {
  if (inNetwork(address, network, bits)) return true
  const inside = address.length === 16 ? carried(address) : undefined
  return inside !== undefined && inNetwork(inside, network, bits)
}

function nameFits(pattern: string, host: string): boolean {
  if (pattern.startsWith('*.')) return host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1
  return host === pattern
}
