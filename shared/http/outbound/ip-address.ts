/** The bytes of an IP address: 4 or 16. */
export type IpBytes = readonly number[]

const DECIMAL = /^(?:0|[1-9]\d{0,2})$/
const GROUP = /^[0-9a-f]{1,4}$/i

/** Reads the plain spelling of an address; undefined for a name. A zone (`%eth0`) is of this machine and is left out. */
export function readIp(text: string): IpBytes | undefined {
  return text.includes(':') ? readV6(text.replace(/%.*$/, '')) : readV4(text)
}

/** Four decimal parts and nothing else: the other spellings have been rewritten by the URL parser before they come here. */
function readV4(text: string): IpBytes | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => DECIMAL.test(part))) return undefined
  const bytes = parts.map(Number)
  return bytes.every(byte => byte <= 255) ? bytes : undefined
}

/** RFC 4291 §2.2, all three forms. */
function readV6(text: string): IpBytes | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half, at) => groups(half, at === halves.length - 1))
  if (head === undefined) return undefined
  if (halves.length === 1) return head.length === 16 ? head : undefined
  if (tail === undefined || head.length + tail.length > 14) return undefined
  return [...head, ...Array.from({ length: 16 - head.length - tail.length }, () => 0), ...tail]
}

function groups(half: string, last: boolean): number[] | undefined {
  if (half === '') return []
  const parts = half.split(':')
  const bytes: number[] = []
  for (const [at, part] of parts.entries()) {
    if (last && at === parts.length - 1 && part.includes('.')) {
      const v4 = readV4(part)
      if (v4 === undefined) return undefined
      bytes.push(...v4)
    } else if (GROUP.test(part)) {
      const value = Number.parseInt(part, 16)
      bytes.push(value >> 8, value & 255)
    } else return undefined
  }
  return bytes
}

/** Whether the first `bits` of both are the same; addresses of different families never match. */
export function inNetwork(address: IpBytes, network: IpBytes, bits: number): boolean {
  if (address.length !== network.length) return false
  for (let at = 0, left = bits; left > 0; at++, left -= 8) {
    const mask = left >= 8 ? 0xff : (0xff << (8 - left)) & 0xff
    if ((address[at]! & mask) !== (network[at]! & mask)) return false
  }
  return true
}

/** An address, or a network in CIDR form; a bare address is a network of one. */
export function readNetwork(text: string): { network: IpBytes; bits: number } | undefined {
  const [address = '', length, ...more] = text.split('/')
  const network = readIp(address)
  if (network === undefined || address.includes('%') || more.length > 0) return undefined
  const most = network.length * 8
  if (length === undefined) return { network, bits: most }
  if (!DECIMAL.test(length) || Number(length) > most) return undefined
  return { network, bits: Number(length) }
}
