import { type Context, Hono } from 'hono'
import { ApiError } from '../../../shared/http/api-error.ts'
import { callerNetwork } from '../../../shared/http/forwarded.ts'
import { mount } from '../../../shared/http/operation.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { accessEndpoints } from '../../../shared/wire/runtime/endpoints/access.ts'
import { userEndpoints } from '../../../shared/wire/runtime/endpoints/users.ts'
import type { Act } from '../../audit-log/log.ts'
import type { RuntimeHttpEnv } from '../../http/http-env.ts'
import { type Operation, type OperationHost, operation } from '../../http/operation.ts'
import { FIRST_TENANT } from '../../schema/first-tenant.ts'
import { makeKey } from '../keys/mint.ts'
import { type Throttle, throttleOfLogins } from '../throttle.ts'
import type { DashboardDeps } from './deps.ts'
import { type HashPassword, hashPassword, loginOperations } from './log-in.ts'
import { scopesOfRole } from './login-access.ts'
import { emailKey, toUserAnswer, type UserRow } from './user-store.ts'

/** Setup, login and what a logged-in person does with the login itself (docs/spec/runtime.md §13). */
export function dashboardRoute(deps: DashboardDeps, host: OperationHost) {
  const hash = hashPassword(deps)
  const tries = deps.loginTries ?? throttleOfLogins(deps.monotonic)
  const { open, behindLogin, loggedIn } = loginOperations(deps, hash, tries)
  const app = new Hono<RuntimeHttpEnv>().use('/auth/*', async (c, next) => {
    refuseForeignPages(c)
    await next()
    c.header('cache-control', 'no-store')
  })
  mount(app, [setUp(deps, hash), acceptInvitation(deps, hash, tries), ...open], host)
  return mount(app, behindLogin, host, () => [loggedIn])
}

/** A browser says so itself when a page of another site sent the request, and could thereby log its visitor in as someone else. */
function refuseForeignPages(c: Context): void {
  if (c.req.header('sec-fetch-site') !== 'cross-site' || c.req.method === 'GET') return
  throw new ApiError('csrf', 'only pages of this address may call this')
}

/** A password for the person whom a link was made for; the link is good once. */
function acceptInvitation(deps: DashboardDeps, hash: HashPassword, tries: Throttle): Operation {
  const { users, now, audit } = deps
  return operation(userEndpoints.accept, async ({ body: { token, password }, context }) => {
    tries.take(`address ${callerNetwork(context.env?.address ?? 'unknown')}`)
    const tokenHash = sha256Hex(token)
    const user = await users.userOfLink(tokenHash, now().getTime())
    if (user === undefined) throw badLink()
    const stored = await hash(user, password)
    const act: Act = {
      ...({ tenantId: user.tenantId, actor: user.id, via: 'dashboard', action: 'acceptInvitation' } as const),
      ...calledBy(context),
    }
    const intent = await audit.intend(act)
    if (!(await users.acceptLink(user.id, tokenHash, stored, now().getTime()))) {
      await audit.drop(intent)
      throw badLink()
    }
    await noteDone(deps, intent, act)
    return { user: toUserAnswer(user) }
  })
}

const calledBy = (context: Context<RuntimeHttpEnv>) => ({
  target: context.req.path,
  requestId: context.get('requestId'),
})

/** The act is done and its caller is owed the answer; what was announced becomes an entry with an unknown outcome. */
async function noteDone({ audit, log }: DashboardDeps, intent: string, act: Act, object?: string): Promise<void> {
  try {
    await audit.done(intent, act, { outcome: 'done', ...(object !== undefined && { object }) })
  } catch (error) {
    log.error('what was done by a link could not be written into the audit log', { error, action: act.action })
  }
}

function badLink(): ApiError<'unauthorized'> {
  return new ApiError(
    'unauthorized',
    'this link is not valid, was used already or has expired: ask its sender for a new one',
  )
}

/** The owner and the first key of an installation, for the token that its start printed, or for its bootstrap key. */
function setUp(deps: DashboardDeps, hash: HashPassword): Operation {
  const { users, keys, now, newId, setupHash, audit } = deps
  return operation(accessEndpoints.setup, async ({ body: { token, email, password, name }, context }) => {
    if (await users.hasOwner()) throw setupDone()
    const tokenHash = await setupHash(token)
    if (!(await users.isSetupToken(tokenHash, now().getTime()))) throw badToken()
    const account = { id: newId(), email: emailKey(email) }
    const stored = await hash(account, password)
    const createdMs = now().getTime()
    const user: UserRow = { ...account, tenantId: FIRST_TENANT, name, role: 'owner', password: stored, createdMs }
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
    const act: Act = {
      ...({ tenantId: FIRST_TENANT, actor: 'setup link', via: 'setup', action: 'setup' } as const),
      ...calledBy(context),
    }
    const intent = await audit.intend(act)
    if (!(await users.setUp(user, tokenHash, createdMs, [key.statement]))) {
      await audit.drop(intent)
      if (await users.hasOwner()) throw setupDone()
      throw (await users.isSetupToken(tokenHash, createdMs)) ? emailTaken() : badToken()
    }
    await noteDone(deps, intent, act, key.answer.key.id)
    return { user: toUserAnswer(user), ...key.answer }
  })
}

function emailTaken(): ApiError<'in_use'> {
  const message = 'this address belongs to a person of this tenant already: remove them first, or take another address'
  return new ApiError('in_use', `email: ${message}`, { details: [{ path: 'email', message }] })
}

function setupDone(): ApiError<'setup_done'> {
  return new ApiError('setup_done', 'this installation already has an owner: log in')
}

function badToken(): ApiError<'unauthorized'> {
  const message =
    'the setup link is not valid or has expired: restart the runtime for a new one. PLATFORM_BOOTSTRAP_KEY, if set, works in its place'
  return new ApiError('unauthorized', message)
}
