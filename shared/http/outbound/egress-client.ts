import { OutboundDenied } from './bounded-body.ts'
import type { OutboundRule } from './outbound-rule.ts'

export interface EgressInit {
  method?: string
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array<ArrayBuffer>
  signal: AbortSignal
  /**
   * `refuse` (default): a redirect is followed inside its origin, and one to another origin fails the call.
   * `show`: a redirect is an answer like any other.
   */
  redirects?: 'refuse' | 'show'
}

/**
 * The one way out of the process: providers, connectors, webhooks and tools call through it. It rejects with
 * OutboundDenied for what may not be called, and with whatever the host says when the other side cannot be reached.
 */
export interface EgressClient {
  fetch(url: URL, init: EgressInit): Promise<Response>
  /** Why an address may not be called, for a refusal at the time it is configured; undefined when it may. */
  problem(url: URL): Promise<string | undefined>
  close(): Promise<void>
}

/** Of a host that connects to nothing. */
export const NO_EGRESS: Pick<EgressClient, 'fetch' | 'problem'> = {
  fetch: () => Promise.reject(new OutboundDenied('this host has no way out')),
  problem: async () => undefined,
}

/** One request without any redirect being followed; `check` has passed for the URL as it stands. */
export type Send = (url: URL, init: EgressInit) => Promise<Response>

const MOST_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Puts the rule and the handling of redirects before a host's own way to send a request. */
export function guardedFetch(rule: Pick<OutboundRule, 'url'>, send: Send): EgressClient['fetch'] {
  return async (url, init) => {
    const { method = 'GET' } = init
    let at = url
    for (let hops = 0; ; hops++) {
      init.signal.throwIfAborted()
      const problem = rule.url(at)
      if (problem !== undefined) throw new OutboundDenied(problem)
      const answer = await send(at, { ...init, method })
      const location = REDIRECTS.has(answer.status) ? answer.headers.get('location') : null
      if (location === null || init.redirects === 'show') return answer
      await answer.body?.cancel().catch(() => undefined)
      const next = URL.parse(location, at)
      const changes = method !== 'GET' && method !== 'HEAD'
      // 302 and 303 send a browser on to what a POST has made; 301, 307 and 308 say that it is to be sent elsewhere.
      const mayBeDone = changes && (answer.status === 302 || answer.status === 303)
      const refuse = (what: string) => new OutboundDenied(`${at.host} answered ${what}`, { mayBeDone })
      // What the call carries was meant for this origin: nothing of it may arrive at another one.
      if (next === null || next.origin !== at.origin) {
        throw refuse('with a redirect to another origin, which is not followed')
      }
      if (hops === MOST_REDIRECTS) throw refuse(`with more than ${hops} redirects`)
      if (answer.status < 307 && changes) throw refuse(`a ${method} with a redirect that would change it into a GET`)
      at = next
    }
  }
}
