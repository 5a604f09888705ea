import type { Span } from './json-scan.ts'

const encoder = new TextEncoder()

/**
 * The body with the bytes of one string literal replaced; every byte outside the literal stays as it was. The body itself where the
 * literal says the name already, byte for byte.
 */
export function spliceModel(body: Uint8Array, literal: Span, wireName: string): Uint8Array {
  const name = encoder.encode(JSON.stringify(wireName))
  if (isAt(body, literal, name)) return body
  const out = new Uint8Array(body.length - (literal.end - literal.start) + name.length)
  out.set(body.subarray(0, literal.start))
  out.set(name, literal.start)
  out.set(body.subarray(literal.end), literal.start + name.length)
  return out
}

function isAt(body: Uint8Array, { start, end }: Span, name: Uint8Array): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i += 1) if (body[start + i] !== name[i]) return false
  return true
}
