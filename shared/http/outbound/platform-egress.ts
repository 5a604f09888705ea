import { type EgressClient, guardedFetch } from './egress-client.ts'
import { OutboundDenied } from './outbound-denied.ts'
import type { OutboundRule } from './outbound-rule.ts'

/**
 * The way out of hosts that have only `fetch`. They do not say what a name resolves to, so literal addresses and names of
 * private networks are refused here, and that a public name does not lead inside is up to the platform's own network.
 */
export function platformEgress(
  rule: OutboundRule,
  fetchFn: typeof fetch = (...given) => fetch(...given),
): EgressClient {
  const problemOf = (url: URL) => rule.url(url) ?? rule.name(url)
  return {
    fetch: guardedFetch(rule, async (url, { method, headers, body, signal }) => {
      const problem = rule.name(url)
      if (problem !== undefined) throw new OutboundDenied(problem)
      return fetchFn(url, {
        ...(method !== undefined && { method }),
        ...(headers && { headers: { ...headers } }),
        ...(body !== undefined && { body }),
        signal,
        redirect: 'manual',
      })
    }),
    problem: async url => problemOf(url),
    async close() {},
  }
}
