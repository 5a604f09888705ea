import { type Context, Hono } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { createMiddleware } from 'hono/factory'
import { ApiError } from '../../../shared/http/api-error.ts'
import { isLoopback } from '../../../shared/http/bind.ts'
import { jsonBody } from '../../../shared/http/validate.ts'
import type { Log } from '../../../shared/log/log.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { type LoggedIn, login, passwordChange, type SetupDone, setup } from '../../../shared/wire/runtime/auth.ts'
import { emptyBody } from '../../../shared/wire/runtime/conventions.ts'
import { type InvitationDone, invitation } from '../../../shared/wire/runtime/user.ts'
import type { Act, AuditLog } from '../../audit-log/log.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import { FIRST_TENANT } from '../../schema/first-tenant.ts'
import { makeKey } from '../keys/mint.ts'
import type { KeyStore } from '../keys/store.ts'
import type { Passwords } from '../password.ts'
import { type Throttle, throttleOfLogins } from '../throttle.ts'
import { emailKey } from './email-key.ts'
import { DEVICE_COOKIE, knownDevices } from './known-devices.ts'
import {
  csrfTokenOf,
  LOGIN_COOKIE,
  type Login,
  loginAccess,
  newToken,
  refuseWithoutCsrfToken,
  scopesOfRole,
} from './login-access.ts'
import { MAX_LOGIN_MS, toUserAnswer, type UserRow, type UserStore } from './user-store.ts'

export interface DashboardDeps {
  users: UserStore
  keys: KeyStore
  passwords: Passwords
  now: () => Date
  monotonic: () => number
  newId: () => string
  maxBodyBytes: number
  audit: Pick<AuditLog, 'intend' | 'done' | 'drop'>
  log: Log
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl?: string | undefined
  /** Counts tries to log in, where something else than this app outlives it. */
  loginTries?: Throttle | undefined
  /** Under what the devices are known that have logged in before; the same in every process on a store. */
  deviceSecret: () => Promise<string>
}

/** Browsers forget a cookie after 400 days at the latest. */
const DEVICE_SECONDS = 400 * 86_400

type LoginEnv = RuntimeHttpEnv & { Variables: { login: Login } }

/** Setup, login and what a logged-in person does with the login itself (docs/spec/runtime.md §13). */
export function dashboardRoute({
  users,
  keys,
  passwords,
  now,
  monotonic,
  newId,
  maxBodyBytes,
  publicUrl,
  audit,
  log,
  loginTries,
  deviceSecret,
}: DashboardDeps) {
  const tries = loginTries ?? throttleOfLogins(monotonic)
  const logins = loginAccess(users, now)

  const devices = knownDevices(deviceSecret)

  /**
   * Counts a try at an e-mail. A browser that is known for one account with that e-mail has tries of its own for that one: where a stranger
   * has none left, it is answered as the only account that the try is for. Undefined: for all.
   */
  async function countTry(c: Context<LoginEnv>, email: string): Promise<string | undefined> {
    const names = [`address ${c.env?.address ?? 'unknown'}`, `email ${emailKey(email)}`]
    const device = await devices.of(getCookie(c, DEVICE_COOKIE), emailKey(email))
    if (device === undefined) tries.take(...names)
    else {
      tries.take(`device ${device.id}`)
      if (!tries.hasTaken(...names)) return device.userId
    }
    return undefined
  }

  /** Accounts with one e-mail share a salt, so that a login is one derivation in however many tenants the e-mail is known. */
  const hashFor = async (user: Pick<UserRow, 'id' | 'email'>, password: string) =>
    passwords.hash(password, await users.passwordBeside(user))

  const loggedIn = createMiddleware<LoginEnv>(async (c, next) => {
    const login = await logins(c)
    refuseWithoutCsrfToken(c, login)
    c.set('login', login)
    await next()
  })

  return new Hono<LoginEnv>()
    .use('/auth/*', async (c, next) => {
      refuseForeignPages(c)
      await next()
      c.header('cache-control', 'no-store')
    })
    .post('/auth/setup', jsonBody(setup, maxBodyBytes), async c => {
      const { token, email, password, name } = c.req.valid('json')
      if (await users.hasOwner()) throw setupDone()
      const tokenHash = sha256Hex(token)
      if (!(await users.isSetupToken(tokenHash, now().getTime()))) throw badToken()
      const id = newId()
      const hash = await hashFor({ id, email: emailKey(email) }, password)
      const createdMs = now().getTime()
      const user: UserRow = {
        id,
        tenantId: FIRST_TENANT,
        email: emailKey(email),
        name,
        role: 'owner',
        password: hash,
        createdMs,
      }
      const key = makeKey(
        keys,
        {
          id: newId(),
          tenantId: FIRST_TENANT,
          name: 'first key',
          scopes: scopesOfRole.owner,
          createdMs,
          createdBy: user.id,
          expiresMs: undefined,
        },
        { ifAuthor: true },
      )
      if (!(await users.setUp(user, tokenHash, createdMs, [key.statement]))) {
        if (await users.hasOwner()) throw setupDone()
        throw (await users.isSetupToken(tokenHash, createdMs)) ? emailTaken() : badToken()
      }
      return c.json({ user: toUserAnswer(user), ...key.answer } satisfies SetupDone, 201)
    })
    .post('/auth/login', jsonBody(login, maxBodyBytes), async c => {
      const { email, password, tenantId } = c.req.valid('json')
      const only = await countTry(c, email)
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
      setCookie(c, LOGIN_COOKIE, token, { ...cookieOf(c, publicUrl), maxAge: MAX_LOGIN_MS / 1000 })
      const device = await devices.make(user.email, user.id)
      setCookie(c, DEVICE_COOKIE, device, { ...cookieOf(c, publicUrl), maxAge: DEVICE_SECONDS })
      return c.json({ user: toUserAnswer(user), csrfToken: csrfTokenOf(token) } satisfies LoggedIn)
    })
    .post('/auth/invitation', jsonBody(invitation, maxBodyBytes), async c => {
      const { token, password } = c.req.valid('json')
      tries.take(`address ${c.env?.address ?? 'unknown'}`)
      const tokenHash = sha256Hex(token)
      const user = await users.userOfLink(tokenHash, now().getTime())
      if (user === undefined) throw badLink()
      const hash = await hashFor(user, password)
      const act: Act = {
        ...{ tenantId: user.tenantId, actor: user.id, via: 'dashboard', action: 'acceptInvitation' },
        ...{ target: c.req.path, requestId: c.get('requestId') },
      }
      const intent = await audit.intend(act)
      if (!(await users.acceptLink(user.id, tokenHash, hash, now().getTime()))) {
        await audit.drop(intent)
        throw badLink()
      }
      try {
        await audit.done(intent, act, { outcome: 'done' })
      } catch (error) {
        log.error('a password that was set by a link could not be written into the audit log', { error })
      }
      return c.json({ user: toUserAnswer(user) } satisfies InvitationDone)
    })
    .get('/auth/me', loggedIn, c => {
      const { user, csrfToken } = c.get('login')
      return c.json({ user: toUserAnswer(user), csrfToken } satisfies LoggedIn)
    })
    .post('/auth/logout', loggedIn, jsonBody(emptyBody, maxBodyBytes), async c => {
      await users.endLogin(c.get('login').hash)
      deleteCookie(c, LOGIN_COOKIE, cookieOf(c, publicUrl))
      return c.body(null, 204)
    })
    .post('/auth/password', loggedIn, jsonBody(passwordChange, maxBodyBytes), async c => {
      const { user, hash } = c.get('login')
      const { currentPassword, newPassword } = c.req.valid('json')
      const only = await countTry(c, user.email)
      const [right] = await passwords.compare(currentPassword, (only ?? user.id) === user.id ? [user.password] : [])
      if (right !== true) {
        const message = 'this is not the current password'
        throw new ApiError('validation_failed', `currentPassword: ${message}`, {
          details: [{ path: 'currentPassword', message }],
        })
      }
      await users.setPassword(user.id, await hashFor(user, newPassword), hash)
      return c.body(null, 204)
    })
}

/** A browser says so itself when a page of another site sent the request, and could thereby log its visitor in as someone else. */
function refuseForeignPages(c: Context): void {
  if (c.req.header('sec-fetch-site') !== 'cross-site' || c.req.method === 'GET') return
  throw new ApiError('csrf', 'this answers pages of its own address only')
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

function emailTaken(): ApiError<'in_use'> {
  const message = 'this address belongs to a person of this tenant already: remove them first, or take another address'
  return new ApiError('in_use', `email: ${message}`, { details: [{ path: 'email', message }] })
}

function badLink(): ApiError<'unauthorized'> {
  return new ApiError('unauthorized', 'this link is not valid, used up or over: ask its sender for a new one')
}

function setupDone(): ApiError<'setup_done'> {
  return new ApiError('setup_done', 'this installation has its owner: log in')
}

function badToken(): ApiError<'unauthorized'> {
  const message = 'the setup link is not valid or is over: restart the runtime to get a new one'
  return new ApiError('unauthorized', message)
}
