const encoder = new TextEncoder()
const HEX = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

export function toHex(bytes: Uint8Array): string {
  let out = ''
  for (const byte of bytes) out += HEX[byte]
  return out
}

export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length >> 1)
  let bad = text.length & 1
  for (let at = 0; at < bytes.length; at++) {
    const value = (digit(text.charCodeAt(at * 2)) << 4) | digit(text.charCodeAt(at * 2 + 1))
    bad |= value & ~0xff
    bytes[at] = value
  }
  if (bad !== 0) throw new TypeError('expected lower-case hex digits in pairs')
  return bytes
}

/** Beyond 255 for what is no digit. */
function digit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  return code >= 97 && code <= 102 ? code - 87 : 0x100
}

/** As many arguments as a call takes on every engine. */
const SPREAD = 8192

/** Standard base64 with padding (RFC 4648 §4). */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += SPREAD) binary += String.fromCharCode(...bytes.subarray(at, at + SPREAD))
  return btoa(binary)
}

/** base64url without padding (RFC 4648 §5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/**
 * Reads either alphabet, with or without padding. Refuses text whose unused last bits are set: two spellings of one
 * signature would let a receipt be edited without a verifier seeing it.
 */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  // Of any number of signs, the pattern would try each of them as the first.
  const plain = text
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/={1,2}$/, '')
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) throw new TypeError('expected base64 text')
  const binary = atob(plain)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at)
  // The last group alone can have bits to spare.
  const group = plain.slice(plain.length - (plain.length % 4))
  if (btoa(atob(group)).replace(/=+$/, '') !== group) throw new TypeError('expected base64 text without stray bits')
  return bytes
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return joined(parts)
}

/** The chunks of a body in one piece; their number has no bound, so they come as a list. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}
