import type { WireError } from './wire.ts'

/** What a libSQL server, or the way to it, made of a statement; `code` is the server's where it gave one. */
export class StoreServerError extends Error {
  override name = 'StoreServerError'
  readonly code: string
  /** Which statement of a batch was refused. */
  readonly statementIndex: number | undefined

  constructor(message: string, code: string, { cause, at }: { cause?: unknown; at?: number } = {}) {
    super(message, { cause })
    this.code = code
    this.statementIndex = at
  }
}

export function refusedBy({ message, code }: WireError, at?: number): StoreServerError {
  return new StoreServerError(message, code ?? 'SQLITE_UNKNOWN', at === undefined ? {} : { at })
}

/** Codes of a connection that was never made. What such a request asked for was surely not done. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
])

/** Whether a request failed before a byte of it was sent. Hosts that say nothing of the reason are taken to have sent it. */
export function neverSent(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('code' in one && NEVER_SENT.has(String(one.code))) return true
    // A name with several addresses: each of them was tried.
    if (one instanceof AggregateError && one.errors.length > 0) return one.errors.every(neverSent)
  }
  return false
}

/** A request that had no whole answer. Unless it was never sent, it may have been done. */
export function unanswered(cause: unknown): StoreServerError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return neverSent(cause)
    ? new StoreServerError(`fetch failed: ${why}`, 'SERVER_NOT_REACHED', { cause })
    : new StoreServerError(`fetch failed, and what was asked for may have been done: ${why}`, 'SERVER_ERROR', { cause })
}
