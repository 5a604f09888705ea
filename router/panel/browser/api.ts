import { readProof } from '../../../shared/proof/read-proof.ts'
import type { Capabilities } from '../../../shared/wire/router/capabilities.ts'
import type { CheckpointList, RouterKeys } from '../../../shared/wire/router/checkpoint.ts'
import type { Evals } from '../../../shared/wire/router/evals.ts'
import type { Explanation } from '../../../shared/wire/router/explain.ts'
import type { FeedbackList, FeedbackResult, ReportedOutcome } from '../../../shared/wire/router/feedback.ts'
import type { Savings } from '../../../shared/wire/router/savings.ts'
import type { TraceDetail, TraceList } from '../../../shared/wire/router/traces.ts'

/** The router did not give what was asked for; the message is for the person at the page. */
export class ApiFault extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
  }
}

type Query = Readonly<Record<string, string | undefined>>

export type PanelApi = ReturnType<typeof panelApi>

/** The router's API by addresses relative to the page. */
export function panelApi(key: () => string | undefined) {
  /** With the key, where there is one. */
  async function call(path: string, more: RequestInit): Promise<Response> {
    const secret = key()
    if (secret !== undefined && !/^[\x21-\x7e]+$/.test(secret)) {
      throw new ApiFault(401, 'A key has no spaces and no letters beyond ASCII: copy it again.')
    }
    const headers = { ...more.headers, ...(secret !== undefined && { 'x-router-key': secret }) }
    return fetch(path, { ...more, headers, cache: 'no-store' }).catch((cause: unknown) => {
      if (more.signal?.aborted) throw cause
      throw new ApiFault(0, 'The router does not answer. Is it running?')
    })
  }

  async function ask<T>(path: string, query: Query = {}, more: RequestInit = {}): Promise<T> {
    const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    const answer = await call(path + search, more)
    const body = await answer
      .text()
      .then(readProof)
      .catch(() => undefined)
    if (answer.ok && body !== undefined) return body as T
    throw new ApiFault(answer.status, messageOf(body) ?? `The router answered ${answer.status} without an explanation.`)
  }

  return {
    traces: (query: Query, signal?: AbortSignal) => ask<TraceList>('-/traces', query, signal && { signal }),
    /** A line that something comes along whenever a trace was sealed. */
    async tail(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const answer = await call('-/traces/tail', { signal })
      if (answer.ok && answer.body !== null) return answer.body
      throw new ApiFault(answer.status, `The router answered ${answer.status}.`)
    },
    trace: (id: string) => ask<TraceDetail>(`-/traces/${encodeURIComponent(id)}`),
    explain: (id: string) => ask<Explanation>(`-/traces/${encodeURIComponent(id)}/explain`),
    capabilities: () => ask<Capabilities>('v1/capabilities'),
    savings: (query: Query) => ask<Savings>('-/savings', query),
    evals: (query: Query) => ask<Evals>('-/evals', query),
    checkpoints: (query: Query, signal?: AbortSignal) =>
      ask<CheckpointList>('-/checkpoints', query, signal && { signal }),
    feedbackRecords: (query: Query, signal?: AbortSignal) =>
      ask<FeedbackList>('-/feedback/records', query, signal && { signal }),
    keys: () => ask<RouterKeys>('.well-known/router-receipts'),
    feedback: (traceId: string, outcome: ReportedOutcome) =>
      ask<FeedbackResult>(
        'v1/feedback',
        {},
        {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ request_id: traceId, outcome, reporter: 'panel' }),
        },
      ),
  }
}

/** Errors of this path have one shape; a proxy in front may answer with another. */
function messageOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined
  const { error } = body
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined
  return typeof error.message === 'string' ? error.message : undefined
}
