import { createMiddleware } from 'hono/factory'
import { joined } from '../sign/bytes.ts'
import { ApiError } from './api-error.ts'

/** Refuses a body that announces itself as too large before a byte of it is read, whatever the path. */
export function announcedBodyLimit(maxBytes: number) {
  return createMiddleware(async (c, next) => {
    const announced = c.req.header('content-length')
    if (announced !== undefined && Number(announced) > maxBytes) throw tooLarge(maxBytes)
    await next()
  })
}

/** Reads a whole body, and stops at the limit when it was sent without a length. */
export async function readBody(
  request: Pick<Request, 'headers' | 'body' | 'arrayBuffer'>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = request.headers.get('content-length')
  // A host reads no further than was announced, and reads that in one piece faster than as a stream.
  if (announced !== null && Number(announced) <= maxBytes) {
    const body = new Uint8Array(await request.arrayBuffer())
    // A request that never was on a wire may announce what it likes.
    if (body.length > maxBytes) throw tooLarge(maxBytes)
    return body
  }
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk)
  }
  return joined(chunks)
}

export function tooLarge(maxBytes: number): ApiError<'payload_too_large'> {
  const message = `the body is larger than the limit of ${maxBytes} bytes`
  // What is left of the body is not worth reading, so the connection cannot be used again.
  return new ApiError('payload_too_large', message, { headers: { connection: 'close' } })
}
