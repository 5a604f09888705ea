import { ApiError } from '../../../shared/http/api-error.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { accessEndpoints } from '../../../shared/wire/runtime/endpoints/access.ts'
import { type Operation, operation } from '../../http/operation.ts'
import { FIRST_TENANT } from '../../schema/first-tenant.ts'
import { makeKey } from '../keys/mint.ts'
import type { DashboardDeps } from './deps.ts'
import { emailKey } from './email-key.ts'
import type { HashPassword } from './hash-password.ts'
import { scopesOfRole } from './login-access.ts'
import { toUserAnswer, type UserRow } from './user-store.ts'

/** The owner and the first key of an installation, for the token that its start printed. */
export function setUp({ users, keys, now, newId }: DashboardDeps, hash: HashPassword): Operation {
  return operation(accessEndpoints.setup, async ({ body: { token, email, password, name } }) => {
    if (await users.hasOwner()) throw setupDone()
    const tokenHash = sha256Hex(token)
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
    if (!(await users.setUp(user, tokenHash, createdMs, [key.statement]))) {
      if (await users.hasOwner()) throw setupDone()
      throw (await users.isSetupToken(tokenHash, createdMs)) ? emailTaken() : badToken()
    }
    return { user: toUserAnswer(user), ...key.answer }
  })
}

function emailTaken(): ApiError<'in_use'> {
  const message = 'this address belongs to a person of this tenant already: remove them first, or take another address'
  return new ApiError('in_use', `email: ${message}`, { details: [{ path: 'email', message }] })
}

function setupDone(): ApiError<'setup_done'> {
  return new ApiError('setup_done', 'this installation has its owner: log in')
}

function badToken(): ApiError<'unauthorized'> {
  const message = 'the setup link is not valid or is over: restart the runtime to get a new one'
  return new ApiError('unauthorized', message)
}
