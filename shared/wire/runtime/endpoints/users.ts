import { z } from 'zod'
import { created, listOf, noContent, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { emptyBody, idParams, pageQuery } from '../conventions.ts'
import { invitation, invitationDone, person, personCreate, personLink, personPatch } from '../user.ts'
import { BODY, BODY_OF_ONE, LIST, ONE } from './errors.ts'

const admin = { tag: 'People', auth: 'bearer', scopes: ['admin'] } as const

export const userEndpoints = {
  list: endpoint({
    id: 'listUsers',
    method: 'GET',
    path: '/v1/users',
    summary: 'List the people of the tenant',
    ...admin,
    query: pageQuery,
    responses: listOf(z.array(person)),
    errors: LIST,
  }),
  invite: endpoint({
    id: 'inviteUser',
    method: 'POST',
    path: '/v1/users',
    summary: 'Invite a person; the link with which they set a password is shown once',
    ...admin,
    body: personCreate,
    responses: created(personLink),
    idempotent: true,
    errors: [...BODY, 409],
  }),
  get: endpoint({
    id: 'getUser',
    method: 'GET',
    path: '/v1/users/{id}',
    summary: 'Read one person',
    ...admin,
    params: idParams,
    responses: ok(person),
    errors: ONE,
  }),
  update: endpoint({
    id: 'updateUser',
    method: 'PATCH',
    path: '/v1/users/{id}',
    summary: 'Change a role or a name, disable or enable; disabling ends every login at once',
    ...admin,
    params: idParams,
    body: personPatch,
    responses: ok(person),
    errors: [...BODY_OF_ONE, 409],
  }),
  link: endpoint({
    id: 'linkUser',
    method: 'POST',
    path: '/v1/users/{id}/link',
    summary: 'A new link to set a password, in place of the last; shown once',
    ...admin,
    params: idParams,
    body: emptyBody,
    responses: created(personLink),
    errors: [...BODY_OF_ONE, 409],
  }),
  remove: endpoint({
    id: 'deleteUser',
    method: 'DELETE',
    path: '/v1/users/{id}',
    summary: 'Remove a person and their logins',
    ...admin,
    params: idParams,
    responses: noContent,
    errors: [...ONE, 409],
  }),
  accept: endpoint({
    id: 'acceptInvitation',
    method: 'POST',
    path: '/auth/invitation',
    tag: 'Dashboard',
    summary: 'Set a password with the one-time token of a link',
    auth: 'none',
    body: invitation,
    responses: ok(invitationDone),
    errors: [400, 401, 413, 429, 500],
  }),
}
