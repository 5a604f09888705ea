import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { ApiError } from '../../../shared/http/api-error.ts'
import { fromBase64, toBase64Url, utf8 } from '../../../shared/sign/bytes.ts'
import { equalSecrets, sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import type { Role } from '../../../shared/wire/runtime/auth.ts'
import type { Scope } from '../../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../../http/http-env.ts'
import type { UserRow, UserStore } from './user-store.ts'

export const LOGIN_COOKIE = 'wb_session'

/** What each role may do, in the words of the keys. The owner of the installation also has its tenants. */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  owner: ['admin', 'platform:admin'],
  member: ['write', 'read', 'runs:approve'],
  viewer: ['read'],
}

export interface Login {
  user: UserRow
  principal: Principal
  /** How the store knows this login. */
  hash: string
  csrfToken: string
  /** Whether it goes on, asked without prolonging it. */
  holds: () => Promise<boolean>
}

/** 32 random bytes, for a login or a setup link. */
export function newToken(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
}

/** Follows from the login, so it needs no place in the store; the login does not follow from it. */
export function csrfTokenOf(token: string): string {
  return toBase64Url(sha256(utf8(`waybill/csrf/v1\n${token}`)))
}

/** Bytes of a token, or of what is laid over it. */
const TOKEN_BYTES = 32
const MASKED = /^([\w-]{43})([\w-]{43})$/

/**
 * A token as it stands in a page, another text each time: the length of a compressed page, which an observer of the network sees, then tells
 * nothing about the token, whatever a stranger put beside it.
 */
export function masked(token: string): string {
  const pad = crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))
  return `${toBase64Url(pad)}${toBase64Url(overlaid(fromBase64(token), pad))}`
}

/** The token in either form. */
function plainToken(given: string): string {
  const [, pad, covered] = MASKED.exec(given) ?? []
  if (pad === undefined || covered === undefined) return given
  try {
    return toBase64Url(overlaid(fromBase64(covered), fromBase64(pad)))
  } catch {
    return given
  }
}

const overlaid = (bytes: Uint8Array, pad: Uint8Array): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(bytes, (byte, at) => byte ^ pad[at]!)

export type LoginAccess = ReturnType<typeof loginAccess>

/** Who is logged in, by the cookie alone. */
export function loginAccess(users: Pick<UserStore, 'userOfLogin' | 'isLoggedIn'>, now: () => Date) {
  return async (c: Context): Promise<Login> => {
    const token = getCookie(c, LOGIN_COOKIE)
    const hash = sha256Hex(token ?? '')
    const user = token === undefined ? undefined : await users.userOfLogin(hash, now().getTime())
    if (user === undefined || token === undefined) throw new ApiError('unauthorized', 'log in first')
    const principal = { tenantId: user.tenantId, keyId: user.id, scopes: scopesOfRole[user.role] }
    const holds = () => users.isLoggedIn(hash, now().getTime())
    return { user, principal, hash, csrfToken: csrfTokenOf(token), holds }
  }
}

/** A page of another site can make a browser send the cookie, and cannot read the token. */
export function refuseWithoutCsrfToken(c: Context, login: Login): void {
  if (c.req.method === 'GET' || c.req.method === 'HEAD') return
  const given = c.req.header('x-csrf-token')
  if (given !== undefined && equalSecrets(plainToken(given), login.csrfToken)) return
  throw new ApiError('csrf', 'send the csrfToken of your login in the header x-csrf-token')
}
