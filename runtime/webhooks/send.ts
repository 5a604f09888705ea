import { denialIn, proxyFaultIn, readAtMost } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { signedHeaders } from './signature.ts'

export interface Sent {
  delivered: boolean
  status: number | undefined
  /** Why it does not count as delivered; nothing of what the other side said. */
  error: string | undefined
}

export interface Message {
  url: string
  secret: string
  id: string
  body: string
}

/** An answer within this time or none (docs/spec/runtime.md §15). */
const DEADLINE_MS = 10_000
/** An answer's body is read this far, so that its connection can be used again, and forgotten. */
const MOST_BODY = 16 * 1024

export interface SendDeps {
  fetch: EgressClient['fetch']
  now: () => Date
  stop: AbortSignal
  deadlineMs?: number
}

/** Sends a message once. Every way in which that can fail is an answer. */
export async function send(deps: SendDeps, { url, secret, id, body }: Message): Promise<Sent> {
  const { fetch, now, stop, deadlineMs = DEADLINE_MS } = deps
  const deadline = AbortSignal.timeout(deadlineMs)
  const failed = (error: string, status?: number): Sent => ({ delivered: false, status, error })
  try {
    const timestamp = Math.floor(now().getTime() / 1000)
    const signature = await signedHeaders(secret, { id, timestamp, body })
    const answer = await fetch(new URL(url), {
      method: 'POST',
      body,
      signal: AbortSignal.any([deadline, stop]),
      redirects: 'show',
      headers: { 'content-type': 'application/json', 'user-agent': 'waybill-webhooks/1', ...signature },
    })
    // The status decides; a body that never ends changes nothing about it.
    await readAtMost(answer, MOST_BODY).catch(() => undefined)
    if (answer.ok) return { delivered: true, status: answer.status, error: undefined }
    const redirects = answer.status >= 300 && answer.status < 400
    return failed(`answered ${answer.status}${redirects ? ', and redirects are not followed' : ''}`, answer.status)
  } catch (error) {
    const denial = denialIn(error)
    if (denial) return failed(denial.message)
    if (deadline.aborted) return failed(`no answer in ${deadlineMs / 1000} seconds`)
    return failed(proxyFaultIn(error)?.message ?? `could not be reached${codeIn(error)}`)
  }
}

/** `ECONNREFUSED` and its like, however deep it stands among the causes. */
function codeIn(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(at.code)) return `: ${at.code}`
  }
  return ''
}
