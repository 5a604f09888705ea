import { type IpBytes, inNetwork, readIp, readNetwork } from './ip-address.ts'

/** What an address is for, by the special-purpose registries of IANA (RFC 6890) and what clouds put where. */
export type AddressKind =
  | 'public'
  | 'private' // RFC 1918, and the site-local addresses of old
  | 'loopback'
  | 'link_local'
  | 'unique_local' // RFC 4193
  | 'shared' // carrier-grade NAT, RFC 6598
  | 'metadata' // where clouds answer a machine's questions about itself, credentials among the answers
  | 'multicast'
  | 'unspecified' // 0.0.0.0/8 and ::, which some systems take for this machine
  | 'broadcast'
  | 'reserved' // documentation, benchmarks, relays, and unassigned ranges

const network = (cidr: string, kind: AddressKind) => ({ ...readNetwork(cidr)!, kind })

/** The first that fits decides, so the narrow ones stand before the wide ones. */
const V4 = [
  network('169.254.169.254/32', 'metadata'),
  network('169.254.169.253/32', 'metadata'),
  network('169.254.170.2/32', 'metadata'),
  network('169.254.170.23/32', 'metadata'),
  network('100.100.100.200/32', 'metadata'),
  network('168.63.129.16/32', 'metadata'),
  network('192.0.0.192/32', 'metadata'),
  network('0.0.0.0/8', 'unspecified'),
  network('10.0.0.0/8', 'private'),
  network('100.64.0.0/10', 'shared'),
  network('127.0.0.0/8', 'loopback'),
  network('169.254.0.0/16', 'link_local'),
  network('172.16.0.0/12', 'private'),
  network('192.0.0.0/24', 'reserved'),
  network('192.0.2.0/24', 'reserved'),
  network('192.88.99.0/24', 'reserved'),
  network('192.168.0.0/16', 'private'),
  network('198.18.0.0/15', 'reserved'),
  network('198.51.100.0/24', 'reserved'),
  network('203.0.113.0/24', 'reserved'),
  network('224.0.0.0/4', 'multicast'),
  network('255.255.255.255/32', 'broadcast'),
  network('240.0.0.0/4', 'reserved'),
]

const V6 = [
  network('fd00:ec2::254/128', 'metadata'),
  network('fd00:ec2::23/128', 'metadata'),
  network('fd20:ce::254/128', 'metadata'),
  network('::/128', 'unspecified'),
  network('::1/128', 'loopback'),
  network('64:ff9b:1::/48', 'private'),
  network('fc00::/7', 'unique_local'),
  network('fe80::/10', 'link_local'),
  network('fec0::/10', 'private'),
  network('ff00::/8', 'multicast'),
  network('2001::/23', 'reserved'),
  network('2001:db8::/32', 'reserved'),
  network('3fff::/20', 'reserved'),
  network('2000::/3', 'public'),
]

/** IPv6 ranges that carry an IPv4 address, and where in them it stands: what is reached is the address inside. */
const CARRIERS = [
  { ...readNetwork('::ffff:0:0/96')!, at: 12 }, // mapped
  { ...readNetwork('::ffff:0:0:0/96')!, at: 12 }, // translated (SIIT)
  { ...readNetwork('64:ff9b::/96')!, at: 12 }, // NAT64
  { ...readNetwork('2002::/16')!, at: 2 }, // 6to4
  { ...readNetwork('::/96')!, at: 12 }, // compatible, of old
]

/** The kind of an address; undefined for a text that is not one. */
export function addressKind(text: string): AddressKind | undefined {
  const address = readIp(text)
  return address && kindOf(address)
}

export function kindOf(address: IpBytes): AddressKind {
  if (address.length === 4) return V4.find(one => inNetwork(address, one.network, one.bits))?.kind ?? 'public'
  const own = V6.find(one => inNetwork(address, one.network, one.bits))?.kind
  // `::` and `::1` look like carried addresses, and an address that has a meaning of its own keeps it.
  if (own !== undefined && own !== 'public') return own
  const inside = carried(address)
  return inside ? kindOf(inside) : (own ?? 'reserved')
}

/** The IPv4 address that an IPv6 address stands for. */
export function carried(address: IpBytes): IpBytes | undefined {
  const carrier = CARRIERS.find(one => inNetwork(address, one.network, one.bits))
  return carrier && address.slice(carrier.at, carrier.at + 4)
}
