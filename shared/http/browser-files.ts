import type { Context } from 'hono'
import { fromBase64 } from '../sign/bytes.ts'
import { sha256Hex } from '../sign/sha256.ts'
import { ApiError } from './api-error.ts'

type Bytes = Uint8Array<ArrayBuffer>

export interface BrowserFiles {
  load: () => Promise<Readonly<Record<string, string>>>
  /** Absent on hosts that pack answers themselves. */
  gzip?: ((text: string) => Bytes | Promise<Bytes>) | undefined
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
}
const TYPEFACE = /\.woff2$/
const TAKES_GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?![\d.]))/

export const takesGzip = (c: Context): boolean => TAKES_GZIP.test(c.req.header('accept-encoding') ?? '')

/** Serves what the pages of a service load: modules and styles with a tag, packed once for all, and the typeface under its version. */
export function browserFiles({ load, gzip }: BrowserFiles) {
  const packed = new Map<string, Bytes>()
  const letters = async () => (await import('../browser/typeface.gen.ts')).typefaceFiles

  function typeface(c: Context, name: string, text: string): Response {
    const bytes = packed.get(name) ?? fromBase64(text)
    packed.set(name, bytes)
    // Its name has its version, so a browser asks for it once.
    c.header('cache-control', 'public, max-age=31536000, immutable')
    return c.body(bytes, 200, { 'content-type': 'font/woff2' })
  }

  return async (c: Context, name: string): Promise<Response> => {
    const known = { ...(await load()), ...(await letters()) }
    if (!Object.hasOwn(known, name)) throw new ApiError('not_found', `there is no file ${name}`)
    const text = known[name]!
    if (TYPEFACE.test(name)) return typeface(c, name, text)
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]!
    // Weak: it names the text, compressed or not.
    const etag = `W/"${sha256Hex(text).slice(0, 16)}"`
    // A new version must not meet modules of the old one.
    c.header('cache-control', 'no-cache')
    c.header('etag', etag)
    if (c.req.header('if-none-match') === etag) return c.body(null, 304)
    c.header('vary', 'accept-encoding')
    if (gzip === undefined || !takesGzip(c)) return c.body(text, 200, { 'content-type': type })
    const body = packed.get(name) ?? (await gzip(text))
    packed.set(name, body)
    return c.body(body, 200, { 'content-type': type, 'content-encoding': 'gzip' })
  }
}
