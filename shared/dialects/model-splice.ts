import type { Span } from './json-scan.ts'

const encoder = new TextEncoder()

/** The body with the bytes of one string literal replaced; every byte outside the literal stays as it was. */
export function spliceModel(body: Uint8Array, literal: Span, wireName: string): Uint8Array {
  const name = encoder.encode(JSON.stringify(wireName))
  const out = new Uint8Array(body.length - (literal.end - literal.start) + name.length)
  out.set(body.subarray(0, literal.start))
  out.set(name, literal.start)
  out.set(body.subarray(literal.end), literal.start + name.length)
  return out
}
