import { ApiError } from '../../shared/http/api-error.ts'
import { CanonicalError, canonicalize } from '../../shared/sign/jcs.ts'

/** The canonical form of what a client sent; text that UTF-8 cannot hold, or a number that a double cannot, is the client's mistake. */
export function canonicalBody(value: unknown): string {
  try {
    return canonicalize(value)
  } catch (cause) {
    if (!(cause instanceof CanonicalError)) throw cause
    const path = cause.path.slice(1).replaceAll('/', '.').toWellFormed()
    const message = 'expected text without unpaired surrogates, and numbers up to 1.8e308'
    throw new ApiError('validation_failed', `${path === '' ? 'body' : path}: ${message}`, {
      details: [{ path, message }],
      cause,
    })
  }
}
