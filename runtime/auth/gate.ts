import type { HonoRequest, MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ApiError, invalidMember } from '../../shared/http/api-error.ts'
import { queryNames } from '../../shared/wire/aliases.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { nearest } from '../../shared/wire/nearest.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { type LoginAccess, refuseWithoutCsrfToken } from './dashboard/login-access.ts'
import { bearerKey, type KeyAccess } from './keys/key-access.ts'

export interface GateDeps {
  keyAccess: Pick<KeyAccess, 'principalOf'>
  logins: LoginAccess
}

export type Gates = ReturnType<typeof gates>

/**
 * Says who calls, before anything else looks at a request (401). Whether there is such an operation (404) and whether it
 * is theirs to call (403) follow, in the order of docs/spec/runtime.md §1.
 */
export function gates({ keyAccess, logins }: GateDeps) {
  return {
    /** For `/v1/`: the header alone counts, no cookie and no parameter. */
    bearer: createMiddleware<RuntimeHttpEnv>(async (c, next) => {
      const key = bearerKey(c.req.header('authorization'))
      const principal = c.env?.principal ?? (key === undefined ? undefined : await keyAccess.principalOf(key))
      if (principal === undefined) throw unauthorized(c.req.header('authorization'))
      c.set('principal', principal)
      const isOurs = c.env?.principal === undefined && key !== undefined
      c.set('admitted', isOurs ? async () => (await keyAccess.principalOf(key)) !== undefined : undefined)
      await next()
    }),
    /** For the dashboard's mount of the same operations: the cookie alone counts. */
    cookie: createMiddleware<RuntimeHttpEnv>(async (c, next) => {
      const login = await logins(c)
      refuseWithoutCsrfToken(c, login)
      c.set('principal', login.principal)
      c.set('admitted', login.holds)
      await next()
    }),
  }
}

/** Lets callers pass that hold a scope of the operation, and whose parameters it knows. */
export function admit(endpoint: Endpoint): MiddlewareHandler<RuntimeHttpEnv> {
  return async (c, next) => {
    refuseWithoutScope(c.get('principal'), endpoint.scopes ?? [])
    refuseUnknownQuery(c.req, endpoint)
    // What a caller may read stays in no cache of a browser or a proxy.
    c.header('cache-control', 'no-store')
    await next()
  }
}

export function refuseWithoutScope({ scopes }: Principal, needed: readonly string[]): void {
  if (!allows(scopes, needed)) throw new ApiError('forbidden_scope', `this needs the scope ${needed.join(' or ')}`)
}

function unauthorized(given: string | undefined): ApiError<'unauthorized'> {
  const message =
    given === undefined
      ? 'send an API key as Authorization: Bearer wb_live_…'
      : 'the API key is not valid: it is malformed, unknown, revoked or expired'
  return new ApiError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } })
}

/** Refuses a parameter that the operation does not have: a filter that was mistyped would answer everything. */
function refuseUnknownQuery(request: HonoRequest, { query }: Pick<Endpoint, 'query'>): void {
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
    throw invalidMember(name, message)
  }
}
