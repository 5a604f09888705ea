import { type Context, Hono } from 'hono'
import { ApiError } from '../../../shared/http/api-error.ts'
import { mount } from '../../../shared/http/operation.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import type { OperationHost } from '../../http/operation.ts'
import { throttleOfLogins } from '../throttle.ts'
import { acceptInvitation } from './accept-invitation.ts'
import type { DashboardDeps } from './deps.ts'
import { hashPassword } from './hash-password.ts'
import { loginOperations } from './log-in.ts'
import { setUp } from './set-up.ts'

/** Setup, login and what a logged-in person does with the login itself (docs/spec/runtime.md §13). */
export function dashboardRoute(deps: DashboardDeps, host: OperationHost) {
  const hash = hashPassword(deps)
  const tries = deps.loginTries ?? throttleOfLogins(deps.monotonic)
  const { open, behindLogin, loggedIn } = loginOperations(deps, hash, tries)
  const app = new Hono<RuntimeHttpEnv>().use('/auth/*', async (c, next) => {
    refuseForeignPages(c)
    await next()
    c.header('cache-control', 'no-store')
  })
  mount(app, [setUp(deps, hash), acceptInvitation(deps, hash, tries), ...open], host)
  return mount(app, behindLogin, host, () => [loggedIn])
}

/** A browser says so itself when a page of another site sent the request, and could thereby log its visitor in as someone else. */
function refuseForeignPages(c: Context): void {
  if (c.req.header('sec-fetch-site') !== 'cross-site' || c.req.method === 'GET') return
  throw new ApiError('csrf', 'this answers pages of its own address only')
}
