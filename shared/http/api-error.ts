import type { Detail } from '../wire/issues.ts'

export interface ApiErrorOptions {
  details?: readonly Detail[]
  headers?: Readonly<Record<string, string>>
  /** Further members of the body, where the code has some of its own. */
  members?: Readonly<Record<string, unknown>>
  cause?: unknown
}

/**
 * A refusal that the caller may read. `code` is a row of the service's closed table, which decides the status; the
 * cause is logged and never answered.
 */
export class ApiError<Code extends string = string> extends Error {
  override name = 'ApiError'
  readonly code: Code
  readonly details: readonly Detail[] | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly members: Readonly<Record<string, unknown>> | undefined

  constructor(code: Code, message: string, { details, headers = {}, members, cause }: ApiErrorOptions = {}) {
    super(message, { cause })
    this.code = code
    this.details = details
    this.headers = headers
    this.members = members
  }
}

/** A member of a request that is refused, by its path. */
export function invalidMember(path: string, message: string, cause?: unknown): ApiError<'validation_failed'> {
  return new ApiError('validation_failed', `${path}: ${message}`, { details: [{ path, message }], cause })
}
