import { neverSent } from '../../http/outbound/never-sent.ts'
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

/** A request that had no whole answer. Unless it was never sent, it may have been done. */
export function unanswered(cause: unknown): StoreServerError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return neverSent(cause)
    ? new StoreServerError(`fetch failed: ${why}`, 'SERVER_NOT_REACHED', { cause })
    : new StoreServerError(`fetch failed, and what was asked for may have been done: ${why}`, 'SERVER_ERROR', { cause })
}
