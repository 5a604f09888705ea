import { z } from 'zod'
import { listOf, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { approval, approvalDecision, approvalListQuery, approvalParams } from '../approval.ts'
import { idParams } from '../conventions.ts'
import { BODY_OF_ONE, LIST, ONE } from './errors.ts'

const decide = {
  method: 'POST',
  tag: 'Approvals',
  auth: 'bearer',
  scopes: ['runs:approve'],
  body: approvalDecision,
  responses: ok(approval),
  errors: [...BODY_OF_ONE, 409],
} as const

export const approvalEndpoints = {
  list: endpoint({
    id: 'listApprovals',
    method: 'GET',
    path: '/v1/approvals',
    tag: 'Approvals',
    summary: 'List approvals',
    auth: 'bearer',
    scopes: ['runs:read'],
    query: approvalListQuery,
    responses: listOf(z.array(approval)),
    errors: LIST,
  }),
  get: endpoint({
    id: 'getApproval',
    method: 'GET',
    path: '/v1/approvals/{id}',
    tag: 'Approvals',
    summary: 'Read an approval',
    auth: 'bearer',
    scopes: ['runs:read'],
    params: idParams,
    responses: ok(approval),
    errors: ONE,
  }),
  ofRun: endpoint({
    id: 'listRunApprovals',
    method: 'GET',
    path: '/v1/runs/{id}/approvals',
    tag: 'Approvals',
    summary: 'The approvals of a run',
    auth: 'bearer',
    scopes: ['runs:read'],
    params: idParams,
    responses: ok(z.array(approval), 'Newest first.'),
    errors: ONE,
  }),
  approve: endpoint({
    id: 'approve',
    path: '/v1/approvals/{id}/approve',
    summary: 'Approve',
    params: idParams,
    ...decide,
  }),
  reject: endpoint({
    id: 'reject',
    path: '/v1/approvals/{id}/reject',
    summary: 'Reject',
    params: idParams,
    ...decide,
  }),
  approveOfRun: endpoint({
    id: 'approveOfRun',
    path: '/v1/runs/{id}/approvals/{approvalId}/approve',
    summary: 'Approve, by the run',
    params: approvalParams,
    ...decide,
  }),
  rejectOfRun: endpoint({
    id: 'rejectOfRun',
    path: '/v1/runs/{id}/approvals/{approvalId}/reject',
    summary: 'Reject, by the run',
    params: approvalParams,
    ...decide,
  }),
}
