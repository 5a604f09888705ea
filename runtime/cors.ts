import type { MiddlewareHandler } from 'hono'

/** What programs call with a key. Pages and logins go by a cookie, which no other site may use. */
const OPEN = /^\/(?:v1\/|mcp$|receipts\/verify$|openapi\.json$|healthz$|readyz$)/

const REQUEST_HEADERS =
  'authorization, content-type, accept, idempotency-key, last-event-id, x-request-id, mcp-session-id, mcp-protocol-version'
const ANSWER_HEADERS = 'x-request-id, link, idempotency-replayed, retry-after, www-authenticate, mcp-session-id'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const MAX_AGE_S = 600

/**
 * Lets pages of the origins in the list call the API from a browser. Each is compared whole; cookies are never allowed, so a key that the
 * page has is the only way in. A browser's preflight carries no key and is answered here.
 */
export function cors(origins: readonly string[]): MiddlewareHandler {
  const allowed = new Set(origins)
  return async (c, next) => {
    if (allowed.size === 0 || !OPEN.test(c.req.path)) return next()
    const origin = c.req.header('origin')
    const known = origin !== undefined && allowed.has(origin)
    if (c.req.method === 'OPTIONS' && origin !== undefined && c.req.header('access-control-request-method')) {
      const headers = {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': REQUEST_HEADERS,
        'access-control-max-age': String(MAX_AGE_S),
      }
      return c.body(null, 204, { vary: 'Origin', ...(known && headers) })
    }
    await next()
    c.header('vary', 'Origin', { append: true })
    if (!known) return
    c.header('access-control-allow-origin', origin)
    c.header('access-control-expose-headers', ANSWER_HEADERS)
  }
}
