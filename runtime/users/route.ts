import { type Context, Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, sameRecord } from '../../shared/http/validate.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { mayMint } from '../../shared/wire/runtime/scopes.ts'
import { type PersonLink, personCreate, personPatch } from '../../shared/wire/runtime/user.ts'
import { emailKey } from '../auth/dashboard/email-key.ts'
import { newToken, scopesOfRole } from '../auth/dashboard/login-access.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import type { Idempotent } from '../http/idempotent.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import { type NewLink, type PersonRow, type PersonStore, toPersonAnswer } from './store.ts'

export interface UsersDeps {
  people: PersonStore
  idempotent: Idempotent
  now: () => Date
  newId: () => string
  maxBodyBytes: number
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl?: string | undefined
}

const LINK_MS = 3 * 24 * 60 * 60 * 1000
const MASK = '***'

/** The people of the caller's tenant. Passwords are set by those whom they belong to, behind a link that is good once. */
export function usersRoute({ people, idempotent, now, newId, maxBodyBytes, publicUrl }: UsersDeps) {
  /** The person who is to be changed: no caller changes a person with more rights than their own. */
  async function find(c: Context<RuntimeHttpEnv>): Promise<PersonRow> {
    const id = c.req.param('id') ?? ''
    const principal = c.get('principal')
    const found = own(principal, await people.get(id), 'person', id)
    if (c.req.method !== 'GET' && !mayMint(principal.scopes, scopesOfRole[found.role])) {
      throw new ApiError(
        'forbidden_scope',
        `this concerns the ${found.role} and needs ${scopesOfRole[found.role].join(' and ')}`,
      )
    }
    return found
  }

  function linkFor(userId: string): NewLink & { token: string } {
    const token = newToken()
    return { token, userId, hash: sha256Hex(token), expiresMs: now().getTime() + LINK_MS }
  }

  function shown(c: Context, row: PersonRow, token: string, expiresMs: number): PersonLink {
    c.header('cache-control', 'no-store')
    const home = (publicUrl ?? new URL(c.req.url).origin).replace(/\/+$/, '')
    return {
      user: toPersonAnswer(row),
      linkToken: token,
      // Behind the `#`, so that no server, proxy or log on the way sees it.
      link: token === MASK ? MASK : `${home}/invite#token=${token}`,
      expiresAt: new Date(expiresMs).toISOString(),
    }
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/v1/users', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await people.list(c.get('principal').tenantId, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toPersonAnswer))
    })
    .post(
      '/v1/users',
      jsonBody(personCreate, maxBodyBytes),
      idempotent({
        oneTime: ['linkToken', 'link'],
        async again(c, id) {
          const row = await people.get(id)
          if (row === undefined) throw notFound('person', id)
          return c.json(shown(c, row, MASK, row.createdMs + LINK_MS), 201)
        },
      }),
      async c => {
        const { name, role, email: given } = c.req.valid('json')
        const email = emailKey(given)
        const id = newId()
        const made = { id, tenantId: c.get('principal').tenantId, email, name, role, createdMs: now().getTime() }
        const { token, ...link } = linkFor(id)
        const bind = c.get('idempotency')?.statement(id)
        if (!(await people.add(made, link, bind ? [bind] : []))) throw emailTaken()
        const row = { ...made, password: '', disabledMs: undefined, loginMs: undefined }
        return c.json(shown(c, row, token, link.expiresMs), 201)
      },
    )
    .get('/v1/users/:id', async c => c.json(toPersonAnswer(await find(c))))
    .patch('/v1/users/:id', jsonBody(personPatch, maxBodyBytes), async c => {
      const row = await find(c)
      const change = c.req.valid('json')
      await sameRecord(change, () => toPersonAnswer(row))
      if (change.disabled === true || change.role !== undefined) refuseOwner(row)
      const changed = await people.update(row.id, change, now().getTime())
      if (changed === undefined) throw notFound('person', row.id)
      return c.json(toPersonAnswer(changed))
    })
    .post('/v1/users/:id/link', jsonBody(emptyBody, maxBodyBytes), async c => {
      const row = await find(c)
      if (row.disabledMs !== undefined) throw new ApiError('in_use', 'this person is disabled: enable them first')
      const { token, ...link } = linkFor(row.id)
      await people.link(link)
      return c.json(shown(c, row, token, link.expiresMs), 201)
    })
    .delete('/v1/users/:id', async c => {
      const row = await find(c)
      refuseOwner(row)
      if (!(await people.remove(row.id))) throw notFound('person', row.id)
      return c.body(null, 204)
    })
}

/** An installation that lost its owner would print a setup link again. */
function refuseOwner({ role }: PersonRow): void {
  if (role === 'owner') throw new ApiError('in_use', 'the owner stays the owner, and stays')
}

function emailTaken(): ApiError<'in_use'> {
  const message = 'this address belongs to a person of this tenant already'
  return new ApiError('in_use', `email: ${message}`, { details: [{ path: 'email', message }] })
}
