import { type Context, Hono } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { ApiError } from '../../../shared/http/api-error.ts'
import { jsonBody } from '../../../shared/http/validate.ts'
import { type OAuthStarted, oauthStart, oauthStartQuery } from '../../../shared/wire/runtime/connector.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import { pathOf } from '../../http/path-of.ts'
import { readQuery } from '../../http/read-query.ts'
import { invalid } from '../config.ts'
import { VendorFailure } from '../vendor-failure.ts'
import { CALLBACK, COOKIE, cookieAt } from './cookie.ts'
import type { OAuthDeps } from './deps.ts'

/** Where people come back to when it is not known any more where they were. */
const LOST = '/ui/connectors?status=stale'

export function oauthStartRoute({ consent, publicUrl, maxBodyBytes }: OAuthDeps) {
  return new Hono<RuntimeHttpEnv>().post('/v1/connectors/oauth/start', jsonBody(oauthStart, maxBodyBytes), async c => {
    const { connectorId, redirectAfter } = c.req.valid('json')
    const { connector } = readQuery(c, oauthStartQuery)
    if (connectorId !== undefined && connector !== undefined && connectorId !== connector) {
      throw invalid([{ path: 'connectorId', message: `expected the same as in the query, ${connector}` }])
    }
    const origin = homeOf(c, publicUrl)
    const inBrowser = pathOf(c) !== c.req.path
    const { redirectUrl, state, expiresMs, browser } = await consent.begin(c.get('principal'), {
      ...{ connectorId: connectorId ?? connector, redirectAfter, origin, inBrowser },
    })
    if (browser !== undefined) setCookie(c, COOKIE, browser, { ...cookieAt(origin), maxAge: 600 })
    c.header('cache-control', 'no-store')
    return c.json({ redirectUrl, state, expiresAt: new Date(expiresMs).toISOString() } satisfies OAuthStarted)
  })
}

/** Where vendors send browsers back to: there is no key here, only a state that was given out once. */
export function oauthCallbackRoute({ consent, publicUrl, audit, log }: OAuthDeps) {
  return new Hono<RuntimeHttpEnv>().get(CALLBACK, async c => {
    c.header('cache-control', 'no-store')
    c.header('referrer-policy', 'no-referrer')
    const home = homeOf(c, publicUrl)
    // What browsers see of a path of this service where a proxy serves it under a path of its own.
    const under = new URL(home).pathname.replace(/\/$/, '')
    try {
      const { location, object, tenantId, starter, failure } = await consent.finish(
        new URL(c.req.url).searchParams,
        getCookie(c, COOKIE),
      )
      deleteCookie(c, COOKIE, cookieAt(home))
      if (failure) log.warn('a vendor did not let itself be connected', { error: failure })
      if (object !== undefined) {
        const act = {
          ...({
            tenantId,
            actor: starter,
            via: 'dashboard',
            action: 'connectorOAuthCallback',
            target: CALLBACK,
          } as const),
          requestId: c.get('requestId'),
        }
        try {
          await audit.done(await audit.intend(act), act, { outcome: 'done', object })
        } catch (error) {
          log.error('an install by OAuth could not be written into the audit log', { error })
        }
      }
      return c.redirect(under + location, 302)
    } catch (error) {
      // A person gets a page to go on from; a program gets the refusal itself.
      const person = c.req.header('accept')?.includes('text/html') === true
      if (person && error instanceof ApiError && error.code === 'validation_failed')
        return c.redirect(under + LOST, 302)
      throw error instanceof VendorFailure ? new ApiError('upstream_failed', error.message, { cause: error }) : error
    }
  })
}

/** The address of this service as browsers know it, without a slash at its end. */
function homeOf(c: Context, publicUrl: string | undefined): string {
  return (publicUrl ?? new URL(c.req.url).origin).replace(/\/+$/, '')
}
