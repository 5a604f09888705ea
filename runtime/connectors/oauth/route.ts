import { Hono } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { ApiError } from '../../../shared/http/api-error.ts'
import { jsonBody } from '../../../shared/http/validate.ts'
import { type OAuthStarted, oauthStart, oauthStartQuery } from '../../../shared/wire/runtime/connector.ts'
import type { RuntimeHttpEnv } from '../../auth/http-env.ts'
import { pathOf } from '../../auth/path-of.ts'
import { readQuery } from '../../paging/read-query.ts'
import { invalid } from '../config.ts'
import { VendorFailure } from '../vendor-failure.ts'
import { CALLBACK, COOKIE, cookieAt } from './cookie.ts'
import type { OAuthDeps } from './deps.ts'

export function oauthStartRoute({ consent, publicUrl, maxBodyBytes }: OAuthDeps) {
  return new Hono<RuntimeHttpEnv>().post('/v1/connectors/oauth/start', jsonBody(oauthStart, maxBodyBytes), async c => {
    const { connectorId, redirectAfter } = c.req.valid('json')
    const { connector } = readQuery(c, oauthStartQuery)
    if (connectorId !== undefined && connector !== undefined && connectorId !== connector) {
      throw invalid([{ path: 'connectorId', message: `expected the same as in the query, ${connector}` }])
    }
    const origin = (publicUrl ?? new URL(c.req.url).origin).replace(/\/+$/, '')
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
    try {
      const { location, object, tenantId, starter } = await consent.finish(
        new URL(c.req.url).searchParams,
        getCookie(c, COOKIE),
      )
      deleteCookie(c, COOKIE, cookieAt((publicUrl ?? new URL(c.req.url).origin).replace(/\/+$/, '')))
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
      return c.redirect(location, 302)
    } catch (error) {
      throw error instanceof VendorFailure ? new ApiError('upstream_failed', error.message, { cause: error }) : error
    }
  })
}
