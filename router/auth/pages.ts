import { isLoopback } from '../../shared/http/bind.ts'
import { readOrigin } from '../../shared/http/forwarded.ts'
import type { Access } from './access.ts'

/** What a request says about where it comes from; browsers say it, and no page can take it away or change it. */
export interface Sender {
  /** Undefined only where there was no such header, which no browser does. */
  host: string | undefined
  origin: string | undefined
  /** `sec-fetch-site`. */
  site: string | undefined
}

/** Why a call to a provider is refused, in a sentence; undefined for a call that may go on. */
export type RefusePage = (sender: Sender) => string | undefined

/**
 * What a browser can be made to send from any site must not spend the keys of a router that asks for none. A page has no key of
 * ours, and a program that holds the router decides itself who reaches it.
 */
export function pageRefusal({ keys, reach, allowedOrigins = [] }: Access): RefusePage {
  if (keys.length > 0 || reach === 'program') return () => undefined
  const allowed = new Set(allowedOrigins)
  const listed = allowedOrigins.filter(readOrigin).map(origin => nameOf(new URL(origin).host))
  const names = new Set(['127.0.0.1', 'localhost', ...listed])

  return ({ host, origin, site }) => {
    if (reach === 'loopback' && host !== undefined) {
      const name = nameOf(host)
      if (!names.has(name) && !isLoopback(name)) {
        return `calls to this router go to 127.0.0.1 or localhost, and this one named "${host}" as its host: call one of those, or put the address that it is called by into ROUTER_ALLOWED_ORIGINS, such as https://${name}`
      }
    }
    if (origin === undefined) return site === 'cross-site' ? foreign('another site') : undefined
    if (allowed.has(origin)) return undefined
    return site === 'cross-site' || !isOwnOrigin(origin, host ?? '') ? foreign(origin) : undefined
  }
}

const foreign = (whose: string) =>
  `a page of ${whose} sent this, and it may not spend the keys of this router: put the page's origin into ROUTER_ALLOWED_ORIGINS, or call from a program, without the headers origin and sec-fetch-site`

/** Whether a request to this machine comes from a program, or from a page that it serves itself. */
export function isOwnPage(host: string, origin: string | undefined): boolean {
  return (origin === undefined || isOwnOrigin(origin, host)) && isLoopback(nameOf(host))
}

function isOwnOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase()
}

/** The name in a `host` header, without its port. */
function nameOf(host: string): string {
  const name = host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, '')
  return name.toLowerCase()
}

const OF_AN_APP = /^((?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]*)\/?$/

/**
 * An origin whose pages may be let in: that of a site, or one that only the shell of an app gives (`app://name`, `file://`).
 * `null` is none, since any page can have it said.
 */
export function readPageOrigin(text: string): string | undefined {
  return readOrigin(text) ?? OF_AN_APP.exec(text.toLowerCase())?.[1]
}
