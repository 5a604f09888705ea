import { isLoopback } from '../../../shared/http/bind.ts'

/** Binds a round to the browser that started it: a link that another person started installs nothing for them. */
export const COOKIE = 'wb_oauth'
export const CALLBACK = '/auth/connectors/callback'

/** Of a service at an address that browsers know, which may have a path of its own. */
export function cookieAt(home: string) {
  const { hostname, pathname } = new URL(`${home}${CALLBACK}`)
  const secure = !isLoopback(hostname.replace(/^\[|\]$/g, ''))
  return { path: pathname, httpOnly: true, sameSite: 'Lax', secure } as const
}
