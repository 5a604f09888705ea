import type { MiddlewareHandler } from 'hono'
import { takesGzip } from './browser-files.ts'

const PACKED = /^(?:text\/html|application\/json)\b/

/** Who asks is this service's own page, or a person who typed the address; over plain HTTP browsers do not say. */
const OWN = /^(?:same-origin|none)$/

/**
 * Sends pages, and JSON to pages, compressed where the browser takes it. What another site opens goes out as it is: an address of its making
 * may be repeated in the page, whose length must tell nothing. Tokens stand masked in pages for the same reason.
 */
export const packedAnswers: MiddlewareHandler = async (c, next) => {
  await next()
  const { body, headers } = c.res
  if (body === null || headers.has('content-encoding') || !PACKED.test(headers.get('content-type') ?? '')) return
  headers.append('vary', 'accept-encoding, sec-fetch-site')
  if (!OWN.test(c.req.header('sec-fetch-site') ?? '')) return
  if (!takesGzip(c)) return
  c.res = new Response(body.pipeThrough(new CompressionStream('gzip')), c.res)
  c.res.headers.set('content-encoding', 'gzip')
  c.res.headers.delete('content-length')
}
