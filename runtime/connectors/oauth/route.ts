import { Hono } from 'hono'
import { deleteCookie, getCookie } from 'hono/cookie'
import { ApiError } from '../../../shared/http/api-error.ts'
import type { Log } from '../../../shared/log/log.ts'
import { connectorEndpoints as endpoints } from '../../../shared/wire/runtime/endpoints/connectors.ts'
import type { AuditLog } from '../../audit-log/log.ts'
import { homeOf, pathOf } from '../../http/addresses.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import { type Operation, operation } from '../../http/operation.ts'
import { invalid } from '../config.ts'
import { VendorFailure } from '../vendor-failure.ts'
import { type Consent, consentStarted } from './consent.ts'
import { CALLBACK, COOKIE, cookieAt } from './cookie.ts'

export interface OAuthDeps {
  consent: Consent
  audit: Pick<AuditLog, 'intend' | 'done'>
  log: Log
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl: string | undefined
}

/** Where people come back to when it is not known any more where they were. */
const LOST = '/ui/connectors?status=stale'

export function oauthOperations({ consent, publicUrl }: OAuthDeps): Operation[] {
  return [
    operation(endpoints.oauthStart, async ({ principal, query: { connector }, body, context }) => {
      const { connectorId = connector, redirectAfter } = body
      if (connector !== undefined && connectorId !== connector) {
        throw invalid([{ path: 'connectorId', message: `expected the same as in the query, ${connector}` }])
      }
      const origin = homeOf(context, publicUrl)
      const inBrowser = pathOf(context) !== context.req.path
      const started = await consent.begin(principal, { connectorId, redirectAfter, origin, inBrowser })
      return consentStarted(context, started, origin)
    }),
  ]
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
