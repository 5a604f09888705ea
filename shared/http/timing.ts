import { createMiddleware } from 'hono/factory'
import { routePath } from 'hono/route'
import type { Histogram } from '../metrics/metrics.ts'

/** Records how long each request took under its route pattern, so that ids never become labels. */
export function timing(seconds: Histogram, monotonic: () => number) {
  return createMiddleware(async (c, next) => {
    const start = monotonic()
    await next()
    const route = c.res.status === 404 || c.res.status === 405 ? 'none' : routePath(c, -1)
    seconds.observe((monotonic() - start) / 1000, { route, method: c.req.method, status: c.res.status })
  })
}
