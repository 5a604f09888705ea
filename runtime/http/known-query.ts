import type { HonoRequest } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { queryNames } from '../../shared/wire/aliases.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { nearest } from '../../shared/wire/nearest.ts'

/** Refuses a parameter that the operation does not have: a filter that was mistyped would answer everything. */
export function refuseUnknownQuery(request: HonoRequest, { query }: Pick<Endpoint, 'query'>): void {
  // Most calls have no query, and reading it costs.
  if (!request.url.includes('?')) return
  const names = query === undefined ? [] : queryNames(query)
  if (names === 'any') return
  for (const name of Object.keys(request.query())) {
    if (names.includes(name)) continue
    const near = nearest(name, names)
    const instead =
      near !== undefined
        ? `did you mean ${near}?`
        : names.length === 0
          ? 'this operation takes none'
          : `expected any of ${names.join(', ')}`
    const message = `unknown query parameter; ${instead}`
    throw new ApiError('validation_failed', `${name}: ${message}`, { details: [{ path: name, message }] })
  }
}
