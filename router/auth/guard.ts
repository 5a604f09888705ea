import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ApiError } from '../../shared/http/api-error.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { CallerEnv } from './access.ts'
import { type CallersDeps, createCallers, pathClassOf } from './callers.ts'
import { isOwnPage } from './pages.ts'

/**
 * Decides who is calling before anything else looks at the request. Only `x-router-key` is read, since other keys are the provider's; on
 * `/metrics`, which goes to no provider, also a bearer token: Prometheus sends no other header before its version 3.
 */
export function guard(deps: CallersDeps) {
  const callers = createCallers(deps)
  return createMiddleware<CallerEnv>(async (c, next) => {
    const room = pathClassOf(c.req.path)
    const key = c.req.header(requestHeaders.key) ?? (room === 'metrics' ? bearerOf(c) : undefined)
    if (room === 'provider') {
      const sender = { host: hostOf(c), origin: c.req.header('origin'), site: c.req.header('sec-fetch-site') }
      c.set('caller', callers.ofCall(sender, key))
    } else {
      if (deps.access.reach === 'loopback') refuseForeignPages(c)
      c.set('caller', callers.of(room, key))
    }
    await next()
  })
}

const bearerOf = (c: Context) => /^Bearer (.+)$/i.exec(c.req.header('authorization') ?? '')?.[1]

/** A web page can aim its own name at this machine; what it then sends still carries that name. */
function refuseForeignPages(c: Context): void {
  if (isOwnPage(hostOf(c), c.req.header('origin'))) return
  throw new ApiError('forbidden', 'this address answers programs of this machine only, and no page of another site')
}

const hostOf = (c: Context): string => c.req.header('host') ?? new URL(c.req.url).host
