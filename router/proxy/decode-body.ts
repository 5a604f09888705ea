import { ApiError } from '../../shared/http/api-error.ts'
import { tooLarge } from '../../shared/http/body-limit.ts'
import { joined } from '../../shared/sign/bytes.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** Names of HTTP, and what the platform calls them. */
const FORMATS: Readonly<Record<string, string>> = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate', br: 'brotli' }

/** Undefined for a body that is sent as it is. */
function encodingOf(headers: HeaderList): string | undefined {
  const encoding = headerValue(headers, 'content-encoding')?.trim().toLowerCase()
  return encoding === undefined || encoding === '' || encoding === 'identity' ? undefined : encoding
}

/**
 * A compressed request as it was before, with the headers that then hold: a routed request is read and written anew, and providers
 * take it uncompressed. Never more than the limit of any body is unpacked.
 */
export async function decodeBody(
  headers: HeaderList,
  body: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<{ headers: HeaderList; body: Uint8Array }> {
  const encoding = encodingOf(headers)
  if (encoding === undefined) return { headers, body }
  const stream = unpacker(encoding)
  const reader = new Blob([body]).stream().pipeThrough(stream).getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      size += value.length
      if (size > maxBytes) throw tooLarge(maxBytes)
      chunks.push(value)
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined)
    if (error instanceof ApiError) throw error
    throw new ApiError(
      'bad_request',
      `the body is not what content-encoding says: it cannot be unpacked as ${encoding}`,
    )
  }
  const whole = joined(chunks)
  const left = headers.filter(([name]) => !/^content-(?:encoding|length)$/i.test(name))
  return { headers: [...left, ['content-length', String(whole.length)]], body: whole }
}

function unpacker(encoding: string): ReadableWritablePair<Uint8Array, BufferSource> {
  const format = FORMATS[encoding]
  try {
    if (format !== undefined) return new DecompressionStream(format as CompressionFormat)
  } catch {
    // Not every platform has every format.
  }
  const message = `content-encoding ${encoding} cannot be read here, and a routed body must be: send it with gzip, deflate or none`
  throw new ApiError('bad_request', message)
}
