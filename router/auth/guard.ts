import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { Access, Caller, CallerEnv } from './access.ts'
import { keyring } from './keys.ts'
import { isOwnPage, pageRefusal, type RefusePage } from './pages.ts'
import { type PathClass, pathClassOf } from './path-class.ts'

export interface GuardDeps {
  access: Access
  /** Whose calls they are where there are no keys. */
  tenantId: string
  sha256: Sha256
}

/** Decides who is calling before anything else looks at the request. Only `x-router-key` is read: other keys are the provider's. */
export function guard({ access, tenantId, sha256 }: GuardDeps) {
  const { keys, reach, insecure, metricsOpen } = access
  const find = keyring(keys, sha256)
  const refusePage = pageRefusal(access)
  const nobody: Caller = { tenantId, sees: tenantId, admin: true }

  function withoutKeys(room: PathClass): Caller {
    const closed = reach === 'network' && !insecure
    if (closed && room === 'metrics' && !metricsOpen) {
      throw new ApiError(
        'unauthorized',
        'metrics are closed on a network address until ROUTER_KEYS is set; ROUTER_METRICS_OPEN=1 opens them to everyone',
      )
    }
    if (closed && (room === 'audit' || room === 'admin')) {
      throw new ApiError(
        'unauthorized',
        'this path is closed on a network address until ROUTER_KEYS is set; ROUTER_INSECURE=1 opens it to everyone',
      )
    }
    return nobody
  }

  function withKeys(room: PathClass, given: string | undefined): Caller {
    if (room === 'open' || (room === 'metrics' && metricsOpen)) return { tenantId, sees: tenantId, admin: false }
    if (given === undefined) throw new ApiError('unauthorized', `send your router key in ${requestHeaders.key}`)
    const key = find(given)
    if (key === undefined) throw new ApiError('unauthorized', `the key in ${requestHeaders.key} is not known here`)
    if (room === 'admin' && !key.admin) {
      throw new ApiError('forbidden', 'this needs an admin key: one that is marked with ! in ROUTER_KEYS')
    }
    return { tenantId: key.tenantId, sees: key.admin ? undefined : key.tenantId, admin: key.admin }
  }

  return createMiddleware<CallerEnv>(async (c, next) => {
    const room = pathClassOf(c.req.path)
    if (room === 'provider') refuseForeignCalls(c, refusePage)
    else if (reach === 'loopback') refuseForeignPages(c)
    c.set('caller', keys.length === 0 ? withoutKeys(room) : withKeys(room, c.req.header(requestHeaders.key)))
    await next()
  })
}

/** A web page can aim its own name at this machine; what it then sends still carries that name. */
function refuseForeignPages(c: Context): void {
  if (isOwnPage(hostOf(c), c.req.header('origin'))) return
  throw new ApiError('forbidden', 'this address answers programs of this machine only, and no page of another site')
}

function refuseForeignCalls(c: Context, refusePage: RefusePage): void {
  const refused = refusePage({ host: hostOf(c), origin: c.req.header('origin'), site: c.req.header('sec-fetch-site') })
  if (refused !== undefined) throw new ApiError('forbidden', refused)
}

const hostOf = (c: Context): string => c.req.header('host') ?? new URL(c.req.url).host
