import { headerValue } from './headers.ts'
import { type HeaderList, TransportError, type UpstreamResponse } from './transport.ts'

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
