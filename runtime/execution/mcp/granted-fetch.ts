import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import type { McpGrants } from './deps.ts'

export interface GrantedFetch {
  fetch: EgressClient['fetch']
  grants: McpGrants
  tenantId: string
  url: string
  /** Receives each token before it is sent. */
  learn: (token: string) => void
}

/**
 * Sends what goes to a server with the token that was granted for it, and once more with another where that one is refused:
 * a 401 has done nothing. Without a grant everything is sent as it is.
 */
export function grantedFetch({ fetch, grants, tenantId, url, learn }: GrantedFetch): EgressClient['fetch'] {
  return async (to, init) => {
    const token = await grants.tokenFor(tenantId, url)
    if (token === undefined) return fetch(to, init)
    const send = (used: string) => {
      learn(used)
      return fetch(to, { ...init, headers: { ...init.headers, authorization: `Bearer ${used}` } })
    }
    const answer = await send(token)
    if (answer.status !== 401) return answer
    const other = await grants.renewed(tenantId, url, token)
    if (other === undefined) return answer
    await answer.body?.cancel()
    return send(other)
  }
}
