import { isLoopback } from '../../../shared/http/bind.ts'

/** Holds a round to the browser that began it: a link that somebody else began installs nothing for them. */
export const COOKIE = 'wb_oauth'
export const CALLBACK = '/auth/connectors/callback'

export function cookieAt(origin: string) {
  const secure = !isLoopback(new URL(origin).hostname.replace(/^\[|\]$/g, ''))
  return { path: CALLBACK, httpOnly: true, sameSite: 'Lax', secure } as const
}
