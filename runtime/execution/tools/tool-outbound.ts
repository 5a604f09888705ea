import { denialIn, readAtMost } from '../../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { StepFailure } from '../failure.ts'
import type { Outbound } from './http-request-tool.ts'

/** The way out of `http_request`: a redirect is shown to the model, which may ask for the new address by its own right. */
export function toolOutbound({ fetch }: Pick<EgressClient, 'fetch'>): Outbound {
  return async ({ url, method, headers, body }, { maxBytes, signal }) => {
    const stop = new AbortController()
    const onAbort = () => stop.abort(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const init = {
        method,
        headers,
        signal: stop.signal,
        redirects: 'show',
        ...(body !== undefined && { body }),
      } as const
      const answer = await fetch(url, init)
      const read = await readAtMost(answer, maxBytes)
      return { status: answer.status, headers: Object.fromEntries(answer.headers), ...read }
    } catch (error) {
      const denial = denialIn(error)
      if (denial) throw new StepFailure('egress_denied', denial.message, { cause: denial })
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
      stop.abort(new Error('the call is over'))
    }
  }
}
