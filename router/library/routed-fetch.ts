import { abortable } from '../../shared/http/abortable.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { Router } from '../router.ts'

export interface RoutedFetchOptions {
  /** Groups the calls of one conversation; sent where a call names no session of its own. */
  session?: string
  /** A mode or profile, sent where a call names none of its own. */
  mode?: string
  /** Takes every other request; default the host's own fetch. */
  fallback?: typeof fetch
}

const INBOUND: ReadonlySet<string> = new Set(['/v1/messages', '/v1/chat/completions', '/v1/responses'])

/**
 * A `fetch` for the provider SDKs: requests to the inbound paths, whatever their host, run through the router in
 * this process; every other request goes to `fallback`.
 */
export function routedFetch(router: Pick<Router, 'fetch'>, options: RoutedFetchOptions = {}): typeof fetch {
  const { session, mode, fallback = fetch } = options
  return async (input, init) => {
    if (!isInbound(input)) return fallback(input, init)
    const request = new Request(input, init)
    const { headers, signal } = request
    signal.throwIfAborted()
    for (const [name, value] of [
      [requestHeaders.session, session],
      [requestHeaders.mode, mode],
    ] as const) {
      if (value !== undefined && !headers.has(name)) headers.set(name, value)
    }
    // A router answers a caller that left with an error of its own; `fetch` promises the reason of the abort.
    return abortable(router.fetch(request), signal)
  }
}

function isInbound(input: string | URL | Request): boolean {
  const url = URL.parse(input instanceof Request ? input.url : input)
  return url !== null && INBOUND.has(url.pathname)
}
