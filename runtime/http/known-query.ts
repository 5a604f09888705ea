import type { MiddlewareHandler } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { queryNames } from '../../shared/wire/aliases.ts'
import { nearest } from '../../shared/wire/nearest.ts'
import type { RuntimeHttpEnv } from './http-env.ts'

/** Refuses a parameter that the operation does not have: a filter that was mistyped would answer everything. */
export const knownQuery: MiddlewareHandler<RuntimeHttpEnv> = async (c, next) => {
  // Most calls have no query, and reading it costs.
  if (c.req.url.includes('?')) {
    const { query } = c.get('endpoint')
    const names = query === undefined ? [] : queryNames(query)
    if (names === 'any') return next()
    for (const name of Object.keys(c.req.query())) {
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
  await next()
}
