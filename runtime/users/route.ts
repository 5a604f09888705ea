import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { sameRecord } from '../../shared/http/validate.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { userEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/users.ts'
import { mayMint } from '../../shared/wire/runtime/scopes.ts'
import type { PersonLink } from '../../shared/wire/runtime/user.ts'
import { newToken, scopesOfRole } from '../auth/dashboard/login-access.ts'
import { emailKey } from '../auth/dashboard/user-store.ts'
import { homeOf } from '../http/addresses.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { type NewLink, type PersonRow, type PersonStore, toPersonAnswer } from './store.ts'

export interface UsersDeps {
  people: PersonStore
  now: () => Date
  newId: () => string
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl?: string | undefined
}

const LINK_MS = 3 * 24 * 60 * 60 * 1000
const MASK = '***'

/** The people of the caller's tenant. Passwords are set by those whom they belong to, behind a link that is good once. */
export function userOperations({ people, now, newId, publicUrl }: UsersDeps): Operation[] {
  const find = async (principal: Principal, { id }: { id: string }): Promise<PersonRow> =>
    own(principal, await people.get(id), 'person', id)

  /** The person who is to be changed: no caller changes a person with more rights than their own. */
  async function findToChange(principal: Principal, params: { id: string }): Promise<PersonRow> {
    const found = await find(principal, params)
    const scopes = scopesOfRole[found.role]
    if (mayMint(principal.scopes, scopes)) return found
    throw new ApiError('forbidden_scope', `this concerns the ${found.role} and needs ${scopes.join(' and ')}`)
  }

  function linkFor(userId: string): NewLink & { token: string } {
    const token = newToken()
    return { token, userId, hash: sha256Hex(token), expiresMs: now().getTime() + LINK_MS }
  }

  function shown(context: Context, row: PersonRow, token: string, expiresMs: number): PersonLink {
    context.header('cache-control', 'no-store')
    return {
      user: toPersonAnswer(row),
      linkToken: token,
      // Behind the `#`, so that no server, proxy or log on the way sees it.
      link: token === MASK ? MASK : `${homeOf(context, publicUrl)}/invite#token=${token}`,
      expiresAt: new Date(expiresMs).toISOString(),
    }
  }

  return [
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await people.list(call.principal.tenantId, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toPersonAnswer)
    }),
    keyedOperation(
      endpoints.invite,
      async ({ principal: { tenantId }, body, idempotency, context }) => {
        const { name, role } = body
        const id = newId()
        const made = { id, tenantId, email: emailKey(body.email), name, role, createdMs: now().getTime() }
        const { token, ...link } = linkFor(id)
        if (!(await people.add(made, link, idempotency.bind(id)))) throw emailTaken()
        const row = { ...made, password: '', disabledMs: undefined, loginMs: undefined }
        return shown(context, row, token, link.expiresMs)
      },
      {
        byReference: true,
        async again({ context }, id) {
          const row = await people.get(id)
          if (row === undefined) throw notFound('person', id)
          return shown(context, row, MASK, row.createdMs + LINK_MS)
        },
      },
    ),
    operation(endpoints.get, async ({ principal, params }) => toPersonAnswer(await find(principal, params))),
    operation(endpoints.update, async ({ principal, params, body }) => {
      const row = await findToChange(principal, params)
      await sameRecord(body, () => toPersonAnswer(row))
      if (body.disabled === true || body.role !== undefined) refuseOwner(row)
      const changed = await people.update(row.id, body, now().getTime())
      if (changed === undefined) throw notFound('person', row.id)
      return toPersonAnswer(changed)
    }),
    operation(endpoints.link, async ({ principal, params, context }) => {
      const row = await findToChange(principal, params)
      if (row.disabledMs !== undefined) throw new ApiError('in_use', 'this person is disabled: enable them first')
      const { token, ...link } = linkFor(row.id)
      await people.link(link)
      return shown(context, row, token, link.expiresMs)
    }),
    operation(endpoints.remove, async ({ principal, params }) => {
      const row = await findToChange(principal, params)
      refuseOwner(row)
      if (!(await people.remove(row.id))) throw notFound('person', row.id)
    }),
  ]
}

/** An installation that lost its owner would print a setup link again. */
function refuseOwner({ role }: PersonRow): void {
  if (role === 'owner') throw new ApiError('in_use', 'the owner keeps this role and cannot be disabled or removed')
}

function emailTaken(): ApiError<'in_use'> {
  const message = 'this address belongs to a person of this tenant already'
  return new ApiError('in_use', `email: ${message}`, { details: [{ path: 'email', message }] })
}
