import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { createMiddleware } from 'hono/factory'
import { ApiError, invalidMember } from '../../../shared/http/api-error.ts'
import { isLoopback } from '../../../shared/http/bind.ts'
import { callerNetwork } from '../../../shared/http/forwarded.ts'
import { toBase64Url, utf8 } from '../../../shared/sign/bytes.ts'
import { equalSecrets, sha256Hex } from '../../../shared/sign/sha256.ts'
import { accessEndpoints as endpoints } from '../../../shared/wire/runtime/endpoints/access.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import { type Operation, operation } from '../../http/operation.ts'
import type { Throttle } from '../throttle.ts'
import type { DashboardDeps } from './deps.ts'
import { csrfTokenOf, LOGIN_COOKIE, type Login, loginAccess, newToken, refuseWithoutCsrfToken } from './login-access.ts'
import { emailKey, MAX_LOGIN_MS, toUserAnswer, type UserRow } from './user-store.ts'

/** Browsers forget a cookie after 400 days at the latest. */
const DEVICE_SECONDS = 400 * 86_400

/** Logging in, and what a person does with the login itself. */
export function loginOperations(deps: DashboardDeps, hash: HashPassword, tries: Throttle) {
  const { users, passwords, now, publicUrl } = deps
  const devices = knownDevices(deps.deviceSecret)
  const countTry = tryCounter(devices, tries)
  const access = loginAccess(users, now)
  const logins = new WeakMap<Context, Login>()

  const loggedIn = createMiddleware<RuntimeHttpEnv>(async (c, next) => {
    const login = await access(c)
    refuseWithoutCsrfToken(c, login)
    logins.set(c, login)
    await next()
  })
  /** Of a call that `loggedIn` let pass. */
  const loginOf = (context: Context): Login => logins.get(context)!

  const open: Operation[] = [
    operation(endpoints.login, async ({ body: { email, password, tenantId }, context }) => {
      const only = await countTry(context, email)
      const accounts = (await users.accountsOf(emailKey(email), tenantId)).filter(({ id }) => id === (only ?? id))
      const fits = await passwords.compare(
        password,
        accounts.map(account => account.password),
      )
      const right = accounts.filter((_, at) => fits[at])
      if (right.length > 1) throw severalTenants(await users.tenantsOf(right))
      const [user] = right
      if (user === undefined) throw notRight()
      const token = newToken()
      if (!(await users.addLogin(sha256Hex(token), user.id, now().getTime()))) throw notRight()
      const cookie = cookieOf(context, publicUrl)
      setCookie(context, LOGIN_COOKIE, token, { ...cookie, maxAge: MAX_LOGIN_MS / 1000 })
      const device = await devices.make(user.email, user.id)
      setCookie(context, DEVICE_COOKIE, device, { ...cookie, maxAge: DEVICE_SECONDS })
      return { user: toUserAnswer(user), csrfToken: csrfTokenOf(token) }
    }),
  ]

  const behindLogin: Operation[] = [
    operation(endpoints.me, ({ context }) => {
      const { user, csrfToken } = loginOf(context)
      return { user: toUserAnswer(user), csrfToken }
    }),
    operation(endpoints.logout, async ({ context }) => {
      await users.endLogin(loginOf(context).hash)
      deleteCookie(context, LOGIN_COOKIE, cookieOf(context, publicUrl))
    }),
    operation(endpoints.password, async ({ body: { currentPassword, newPassword }, context }) => {
      const login = loginOf(context)
      const { user } = login
      const only = await countTry(context, user.email)
      const [right] = await passwords.compare(currentPassword, (only ?? user.id) === user.id ? [user.password] : [])
      if (right !== true) {
        const [path, message] = ['currentPassword', 'this is not the current password']
        throw invalidMember(path, message)
      }
      await users.setPassword(user.id, await hash(user, newPassword), login.hash)
    }),
  ]
  return { open, behindLogin, loggedIn }
}

/**
 * Counts a try at an e-mail. A browser that is known for one account with that e-mail has tries of its own for that one: where a stranger
 * has none left, it is answered as the only account that the try is for. Undefined: for all.
 */
function tryCounter(devices: ReturnType<typeof knownDevices>, tries: Throttle) {
  return async (c: Context<RuntimeHttpEnv>, email: string): Promise<string | undefined> => {
    const names = [`address ${callerNetwork(c.env?.address ?? 'unknown')}`, `email ${emailKey(email)}`]
    const device = await devices.of(getCookie(c, DEVICE_COOKIE), emailKey(email))
    if (device === undefined) tries.take(...names)
    else {
      tries.take(`device ${device.id}`)
      if (!tries.hasTaken(...names)) return device.userId
    }
    return undefined
  }
}

function cookieOf(c: Context, publicUrl: string | undefined) {
  const { hostname } = new URL(publicUrl ?? c.req.url)
  const secure = !isLoopback(hostname.replace(/^\[|\]$/g, ''))
  return { path: '/', httpOnly: true, sameSite: 'Lax', secure } as const
}

/** The same for a wrong password, an unknown person, a tenant without the account, and a disabled person. */
function notRight(): ApiError<'unauthorized'> {
  return new ApiError('unauthorized', 'the e-mail or the password is not right')
}

function severalTenants(tenants: readonly { id: string; name: string }[]): ApiError<'several_tenants'> {
  const listed = tenants.map(({ id, name }) => `${id} (${name})`).join(', ')
  const message = `the e-mail and the password fit several tenants: send the tenantId of one of them: ${listed}`
  return new ApiError('several_tenants', message, { members: { tenants } })
}

const DEVICE_COOKIE = 'wb_device'

interface Device {
  id: string
  /** The account that it has logged in to. */
  userId: string
}

/**
 * Browsers in which a person has logged in before. Their tries are counted by themselves, so that a stranger who sends wrong passwords for
 * a known e-mail keeps no owner out. A device is a random id, an account, and the MAC of both for one e-mail: it opens nothing without the
 * password, and stands for no other account with that e-mail, which may be another tenant's.
 */
function knownDevices(secret: () => Promise<string>) {
  const macOf = async (id: string, userId: string, email: string) =>
    toBase64Url(hmac(sha256, utf8(await secret()), utf8(`waybill/device/v2\n${id}\n${userId}\n${email}`)))
  return {
    /** What a browser keeps after a login with it. */
    async make(email: string, userId: string): Promise<string> {
      const id = newToken()
      return `${id}.${userId}.${await macOf(id, userId, email)}`
    },

    /** The device of a cookie that was made for this e-mail. */
    async of(cookie: string | undefined, email: string): Promise<Device | undefined> {
      const [id, userId, mac, more] = cookie?.split('.') ?? []
      if (id === undefined || userId === undefined || mac === undefined || more !== undefined) return undefined
      return equalSecrets(mac, await macOf(id, userId, email)) ? { id, userId } : undefined
    },
  }
}

export type HashPassword = ReturnType<typeof hashPassword>

/** Accounts with one e-mail share a salt, so that a login is one derivation in however many tenants the e-mail is known. */
export function hashPassword({ users, passwords }: Pick<DashboardDeps, 'users' | 'passwords'>) {
  return async (user: Pick<UserRow, 'id' | 'email'>, password: string): Promise<string> =>
    passwords.hash(password, await users.passwordBeside(user))
}
