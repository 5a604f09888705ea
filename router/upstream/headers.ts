import { type HeaderList, TransportError, type UpstreamResponse } from './transport.ts'

/** RFC 9110 §7.6.1 and the names that only concern one connection. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Tells a proxy such as nginx to pass a stream on as it comes. */
export const UNBUFFERED: HeaderList[number] = ['x-accel-buffering', 'no']

const all = () => true

/** What goes to the upstream: everything end to end that `also` lets pass, in order; our own headers, `host` and `expect` are consumed. */
export function toUpstream(headers: HeaderList, also: (lowerName: string) => boolean = all): HeaderList {
  const named = connectionNames(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    if (HOP_BY_HOP.has(key) || named.has(key) || key === 'host' || key === 'expect') return false
    return !key.startsWith('x-router-') && also(key)
  })
}

/** What goes back to the client: everything end to end that `also` lets pass, in order. An upstream cannot set our headers. */
export function toClient(headers: HeaderList, also: (lowerName: string) => boolean = all): HeaderList {
  const named = connectionNames(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    return !HOP_BY_HOP.has(key) && !named.has(key) && !key.startsWith('x-router-') && also(key)
  })
}

/** The value of a header, the last one when it is repeated. */
export function headerValue(headers: HeaderList, wanted: string): string | undefined {
  let found: string | undefined
  for (const [name, value] of headers) if (name.length === wanted.length && name.toLowerCase() === wanted) found = value
  return found
}

function connectionNames(headers: HeaderList): ReadonlySet<string> {
  let named: Set<string> | undefined
  for (const [name, value] of headers) {
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    named ??= new Set()
    for (const one of value.split(',')) named.add(one.trim().toLowerCase())
  }
  return named ?? NONE
}

const CONNECTION = 'connection'

const NONE: ReadonlySet<string> = new Set()

/** Names of HTTP, and what the platform calls them. */
const FORMATS: Readonly<Record<string, string>> = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate', br: 'brotli' }

/** The bytes are not in the encoding that the answer names, or end before it does. */
export class EncodingError extends Error {
  override name = 'EncodingError'
}

/** A decoder for a `content-encoding`; undefined where this host has none. */
export function decoderOf(encoding: string): DecompressionStream | undefined {
  const format = FORMATS[encoding.trim().toLowerCase()]
  if (format === undefined) return undefined
  try {
    return new DecompressionStream(format as CompressionFormat)
  } catch {
    return undefined
  }
}

/** An answer whose bytes can be read; some upstreams compress although they were asked for `identity`. */
export function decoded({ headers, body, rawEncoding }: Omit<UpstreamResponse, 'status'>): {
  headers: HeaderList
  body: AsyncIterable<Uint8Array>
} {
  const encoding = rawEncoding ? headerValue(headers, 'content-encoding') : undefined
  const decoder = encoding === undefined ? undefined : decoderOf(encoding)
  if (!decoder) return { headers, body }
  const left = headers.filter(([name]) => !/^content-(?:encoding|length|md5)$|^etag$/i.test(name))
  return { headers: left, body: through(body, decoder) }
}

async function* through(body: AsyncIterable<Uint8Array>, decoder: DecompressionStream): AsyncIterable<Uint8Array> {
  const writer = decoder.writable.getWriter()
  let failure: unknown
  const feed = async () => {
    try {
      for await (const chunk of body) await writer.write(chunk as Uint8Array<ArrayBuffer>)
      await writer.close()
    } catch (error) {
      failure ??= error
      await writer.abort(error).catch(() => undefined)
    }
  }
  void feed()
  try {
    yield* decoder.readable
  } catch (error) {
    // A stream pair gives errors of its own; what the transport said went wrong first.
    if (failure instanceof TransportError) throw failure
    throw new EncodingError('the answer is not in the encoding that it names', { cause: failure ?? error })
  }
}
