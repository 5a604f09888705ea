import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { endpointMatcher } from '../http/match-endpoint.ts'
import { pathOf } from '../http/path-of.ts'
import { type LoginAccess, refuseWithoutCsrfToken } from './dashboard/login-access.ts'
import { bearerKey } from './keys/api-key.ts'
import type { KeyAccess } from './keys/key-access.ts'

export interface GateDeps {
  /** The operations that are mounted; their scopes are the ones that the OpenAPI document prints. */
  endpoints: readonly Endpoint[]
  keyAccess: Pick<KeyAccess, 'principalOf'>
  logins: LoginAccess
}

export type Gates = ReturnType<typeof gates>

/**
 * Decides who may call which operation before anything else looks at a request, in the order of docs/spec/runtime.md §1: who it is
 * (401), whether there is such an operation (404), whether it is theirs to call (403).
 */
export function gates({ endpoints, keyAccess, logins }: GateDeps) {
  const match = endpointMatcher(endpoints)

  function find(c: Context): Endpoint {
    const endpoint = match(c.req.method, pathOf(c))
    if (endpoint !== undefined) return endpoint
    throw new ApiError('not_found', `route not found: ${c.req.method} ${c.req.path}`)
  }

  function admit(c: Context<RuntimeHttpEnv>, endpoint: Endpoint, principal: Principal): void {
    refuseWithoutScope(principal, endpoint.scopes ?? [])
    c.set('principal', principal)
    c.set('endpoint', endpoint)
  }

  return {
    /** For `/v1/`: the header alone counts, no cookie and no parameter. */
    bearer: createMiddleware<RuntimeHttpEnv>(async (c, next) => {
      const key = bearerKey(c.req.header('authorization'))
      const principal = key === undefined ? undefined : await keyAccess.principalOf(key)
      if (principal === undefined) throw unauthorized(c.req.header('authorization'))
      admit(c, find(c), principal)
      await next()
    }),
    /** For the dashboard's mount of the same operations: the cookie alone counts. */
    cookie: createMiddleware<RuntimeHttpEnv>(async (c, next) => {
      const login = await logins(c)
      const endpoint = find(c)
      refuseWithoutCsrfToken(c, login)
      admit(c, endpoint, login.principal)
      await next()
    }),
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
