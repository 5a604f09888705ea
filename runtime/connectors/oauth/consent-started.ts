import type { Context } from 'hono'
import { setCookie } from 'hono/cookie'
import type { OAuthStarted } from '../../../shared/wire/runtime/connector.ts'
import type { StartedConsent } from './consent.ts'
import { COOKIE, cookieAt } from './cookie.ts'

/** Answers the start of a consent: where the browser goes now, and the cookie that binds the round to it. */
export function consentStarted(
  context: Context,
  { redirectUrl, state, expiresMs, browser }: StartedConsent,
  origin: string,
): OAuthStarted {
  if (browser !== undefined) setCookie(context, COOKIE, browser, { ...cookieAt(origin), maxAge: 600 })
  context.header('cache-control', 'no-store')
  return { redirectUrl, state, expiresAt: new Date(expiresMs).toISOString() }
}
