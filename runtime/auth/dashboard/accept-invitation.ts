import { ApiError } from '../../../shared/http/api-error.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { userEndpoints } from '../../../shared/wire/runtime/endpoints/users.ts'
import type { Act } from '../../audit-log/log.ts'
import { type Operation, operation } from '../../http/operation.ts'
import type { Throttle } from '../throttle.ts'
import type { DashboardDeps } from './deps.ts'
import type { HashPassword } from './hash-password.ts'
import { toUserAnswer } from './user-store.ts'

/** A password for the person whom a link was made for; the link is good once. */
export function acceptInvitation(
  { users, now, audit, log }: DashboardDeps,
  hash: HashPassword,
  tries: Throttle,
): Operation {
  return operation(userEndpoints.accept, async ({ body: { token, password }, context }) => {
    tries.take(`address ${context.env?.address ?? 'unknown'}`)
    const tokenHash = sha256Hex(token)
    const user = await users.userOfLink(tokenHash, now().getTime())
    if (user === undefined) throw badLink()
    const stored = await hash(user, password)
    const act: Act = {
      tenantId: user.tenantId,
      actor: user.id,
      via: 'dashboard',
      action: 'acceptInvitation',
      target: context.req.path,
      requestId: context.get('requestId'),
    }
    const intent = await audit.intend(act)
    if (!(await users.acceptLink(user.id, tokenHash, stored, now().getTime()))) {
      await audit.drop(intent)
      throw badLink()
    }
    try {
      await audit.done(intent, act, { outcome: 'done' })
    } catch (error) {
      log.error('a password that was set by a link could not be written into the audit log', { error })
    }
    return { user: toUserAnswer(user) }
  })
}

function badLink(): ApiError<'unauthorized'> {
  return new ApiError('unauthorized', 'this link is not valid, used up or over: ask its sender for a new one')
}
