import type { ServerResponse } from 'node:http'

/** A piece of a body as it goes out, or a pause of so many milliseconds. */
export type Part = string | Uint8Array | number

/** What an upstream does on the wire with one call, as data: so that a test knows what a relay must pass on. */
export interface Wire {
  /** Milliseconds before the head. */
  delay?: number
  /** Without a head nothing is sent at all. */
  head?: { status: number; headers: Readonly<Record<string, string>> }
  body: readonly Part[]
  /** The answer ends, the connection is cut, or nothing more comes. */
  end: 'whole' | 'reset' | 'stall'
}

const encoder = new TextEncoder()
export const bytesOf = (part: string | Uint8Array): Uint8Array =>
  typeof part === 'string' ? encoder.encode(part) : part

export const json = (body: string | Uint8Array | object, status = 200, headers: Record<string, string> = {}): Wire => {
  const sent = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  const length = { 'content-length': String(bytesOf(sent).length) }
  return {
    head: { status, headers: { 'content-type': 'application/json', ...length, ...headers } },
    body: [sent],
    end: 'whole',
  }
}

export const sse = (frames: readonly Part[], headers: Record<string, string> = {}): Wire => ({
  head: { status: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8', ...headers } },
  body: frames,
  end: 'whole',
})

/** The same answer, but only its first `bytes` come. */
export function cutAfter(wire: Wire, bytes: number, end: 'reset' | 'stall' | 'whole'): Wire {
  return { ...wire, body: [Buffer.concat(wire.body.flatMap(chunk)).subarray(0, bytes)], end }
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

const chunk = (part: Part) => (typeof part === 'number' ? [] : [bytesOf(part)])

export async function play(wire: Wire, response: ServerResponse): Promise<void> {
  if (wire.delay !== undefined) await pause(wire.delay)
  if (wire.head === undefined) {
    if (wire.end === 'reset') response.destroy()
    return
  }
  response.writeHead(wire.head.status, wire.head.headers)
  response.flushHeaders()
  for (const part of wire.body) {
    if (response.destroyed) return
    if (typeof part === 'number') await pause(part)
    else response.write(part)
  }
  if (wire.end === 'whole') response.end()
  // What was written has to leave before the cut, or there would be nothing to be cut.
  else if (wire.end === 'reset') response.write('', () => setTimeout(() => response.destroy(), 20))
}

export interface Received {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: Uint8Array
  /** The answer ended as its own framing says. */
  complete: boolean
}

/** What a client of this upstream gets; undefined when that is no answer at all. */
export function received({ head, body, end }: Wire): Omit<Received, 'headers'> | undefined {
  if (head === undefined) return undefined
  const bytes = Buffer.concat(body.flatMap(chunk))
  const length = Number(head.headers['content-length'] ?? bytes.length)
  const complete = length < bytes.length || (end === 'whole' && length === bytes.length)
  return { status: head.status, bytes: bytes.subarray(0, length), complete }
}
