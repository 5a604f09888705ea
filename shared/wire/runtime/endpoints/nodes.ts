import { z } from 'zod'
import { created, gone, listOf, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { emptyBody, idParams, pageQuery } from '../conventions.ts'
import { node, nodeCreate, nodeCreated, nodeDeleteQuery, platformNodes } from '../node.ts'
import { BODY, BODY_OF_ONE, LIST, ONE } from './errors.ts'

const write = { tag: 'Nodes', auth: 'bearer', scopes: ['nodes:write'] } as const
const read = { method: 'GET', tag: 'Nodes', auth: 'bearer', scopes: ['nodes:read'] } as const

export const nodeEndpoints = {
  create: endpoint({
    id: 'createNode',
    method: 'POST',
    path: '/v1/nodes',
    summary: 'Announce a node; the enrolment token is shown once',
    ...write,
    body: nodeCreate,
    responses: created(nodeCreated),
    idempotent: true,
    errors: [...BODY, 409],
  }),
  list: endpoint({
    id: 'listNodes',
    path: '/v1/nodes',
    summary: 'List nodes',
    ...read,
    query: pageQuery,
    responses: listOf(z.array(node)),
    errors: LIST,
  }),
  get: endpoint({
    id: 'getNode',
    path: '/v1/nodes/{id}',
    summary: 'Read a node',
    ...read,
    params: idParams,
    responses: ok(node),
    errors: ONE,
  }),
  drain: endpoint({
    id: 'drainNode',
    method: 'POST',
    path: '/v1/nodes/{id}/drain',
    summary: 'Give the node no new work',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: ok(node),
    errors: BODY_OF_ONE,
  }),
  undrain: endpoint({
    id: 'undrainNode',
    method: 'POST',
    path: '/v1/nodes/{id}/undrain',
    summary: 'Give the node work again',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: ok(node),
    errors: BODY_OF_ONE,
  }),
  remove: endpoint({
    id: 'deleteNode',
    method: 'DELETE',
    path: '/v1/nodes/{id}',
    summary: 'Remove a node; by force, its unfinished runs end as lost',
    ...write,
    params: idParams,
    query: nodeDeleteQuery,
    responses: gone,
    errors: [...ONE, 400, 409],
  }),
  wellKnown: endpoint({
    id: 'getPlatformNodes',
    method: 'GET',
    path: '/.well-known/platform-nodes',
    tag: 'Nodes',
    summary: 'Where nodes dial in',
    auth: 'none',
    responses: ok(platformNodes),
    errors: [500],
  }),
}
