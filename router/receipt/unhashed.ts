import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { bodyHash, bodyHashes, type Hashing, type Prompted, requestSealed } from './request-part.ts'

type Hashes = 'prompt_hash' | 'body_sha256_in' | 'body_sha256_out'

/** A record that is finished but for the hashes of its bodies: its writer makes them, in this thread or in another. */
export interface Unhashed extends Prompted {
  record: Omit<UnsealedTrace, 'request'> & { request: Omit<UnsealedTrace['request'], Hashes> }
  /** What went upstream: the very same bytes where none was changed, null where nothing went. */
  sent: Uint8Array | null
  context?: CallContext | undefined
}

/** What the trace of a call needs beside its receipt; there only where calls are traced. */
export interface CallContext {
  traceparent: string | undefined
  /** When each attempt began, in milliseconds from the arrival of the call. */
  starts: readonly number[]
}

/** A record that is whole. */
export interface Whole {
  whole: UnsealedTrace
  context?: CallContext | undefined
}

export function hashed({ record, body, prompt, sent }: Unhashed, hashing: Hashing): UnsealedTrace {
  const hashes = bodyHashes({ body, prompt }, hashing)
  const out = sent === null ? null : sent === body ? hashes.body_sha256_in : bodyHash(hashing, sent)
  return { ...record, request: requestSealed({ ...record.request, ...hashes }, out) }
}

/** A record, with its hashes or before. */
export type Recorded = Whole | Unhashed

export const idOf = (one: Recorded): string => ('body' in one ? one.record : one.whole).trace_id

export const finished = (one: Recorded, hashing: Hashing): Whole =>
  'body' in one ? { whole: hashed(one, hashing), context: one.context } : one

/** How many bytes the hashes are made of; what was sent unchanged is there once. */
export function bytesToHash({ body, sent }: Unhashed): number {
  return body.length + (sent === null || sent === body ? 0 : sent.length)
}
