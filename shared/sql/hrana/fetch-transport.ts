import { readBody } from '../../http/body-limit.ts'
import { ANSWER_MS, MOST_ANSWER_BYTES, type ServerAddress, serverHeaders } from './server-address.ts'
import type { HranaTransport } from './stream.ts'

/** Over the `fetch` of the host: what there is in a worker, and what knows certificates and proxies. */
export function fetchTransport(
  address: ServerAddress,
  fetchFn: typeof fetch = (...given) => fetch(...given),
): HranaTransport {
  const headers = serverHeaders(address)
  return {
    async post(url, body) {
      const signal = AbortSignal.timeout(ANSWER_MS)
      // A redirect would carry the token elsewhere.
      const answer = await fetchFn(url, { method: 'POST', headers, body, redirect: 'manual', signal })
      const bytes = await readBody(answer, MOST_ANSWER_BYTES)
      return { status: answer.status, text: new TextDecoder().decode(bytes) }
    },
    async close() {},
  }
}
