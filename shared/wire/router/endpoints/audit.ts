import { ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { capabilities } from '../capabilities.ts'
import { checkpointList, checkpointListQuery, routerKeys } from '../checkpoint.ts'
import { evals, evalsQuery } from '../evals.ts'
import { explanation } from '../explain.ts'
import { feedbackList, feedbackListQuery, feedbackRequest, feedbackResult } from '../feedback.ts'
import { savings, savingsQuery } from '../savings.ts'
import { traceDetail, traceList, traceListQuery, traceParams } from '../traces.ts'

const read = { method: 'GET', tag: 'Audit', auth: 'router-key' } as const

export const auditEndpoints = {
  feedback: endpoint({
    id: 'submitFeedback',
    method: 'POST',
    path: '/v1/feedback',
    tag: 'Feedback',
    summary: 'Report how an earlier answer turned out',
    auth: 'router-key',
    body: feedbackRequest,
    responses: { 202: { description: 'Taken; a repeat has no second effect.', schema: feedbackResult } },
    errors: [400, 401, 403, 404, 408, 413, 500, 503],
  }),
  capabilities: endpoint({
    id: 'getCapabilities',
    path: '/v1/capabilities',
    summary: 'What this router is configured to do',
    ...read,
    responses: ok(capabilities),
    errors: [401, 403, 500],
  }),
  traces: endpoint({
    id: 'listTraces',
    path: '/-/traces',
    summary: 'List decisions, newest first',
    ...read,
    query: traceListQuery,
    responses: ok(traceList),
    errors: [400, 401, 403, 500],
  }),
  trace: endpoint({
    id: 'getTrace',
    path: '/-/traces/{id}',
    summary: 'Read a decision by its trace id, the response id or a request id',
    ...read,
    params: traceParams,
    responses: ok(traceDetail),
    errors: [400, 401, 403, 404, 500],
  }),
  explain: endpoint({
    id: 'explainTrace',
    path: '/-/traces/{id}/explain',
    summary: 'Why a request was routed as it was',
    ...read,
    params: traceParams,
    responses: ok(explanation),
    errors: [400, 401, 403, 404, 500],
  }),
  savings: endpoint({
    id: 'getSavings',
    path: '/-/savings',
    summary: 'Savings against always using the top rung',
    ...read,
    query: savingsQuery,
    responses: ok(savings),
    errors: [400, 401, 403, 500],
  }),
  evals: endpoint({
    id: 'getEvals',
    path: '/-/evals',
    summary: 'Gate outcomes, reported outcomes and calibration',
    ...read,
    query: evalsQuery,
    responses: ok(evals),
    errors: [400, 401, 403, 500],
  }),
  checkpoints: endpoint({
    id: 'listCheckpoints',
    path: '/-/checkpoints',
    summary: 'Signed heads of the chain',
    ...read,
    query: checkpointListQuery,
    responses: ok(checkpointList),
    errors: [400, 401, 403, 500],
  }),
  feedbackRecords: endpoint({
    id: 'listFeedback',
    path: '/-/feedback/records',
    summary: 'What was reported, in the order of its chains',
    ...read,
    query: feedbackListQuery,
    responses: ok(feedbackList),
    errors: [400, 401, 403, 500],
  }),
  keys: endpoint({
    id: 'getRouterReceiptKeys',
    method: 'GET',
    path: '/.well-known/router-receipts',
    tag: 'Audit',
    summary: 'The public keys that checkpoints are signed with',
    auth: 'none',
    responses: ok(routerKeys),
    errors: [403, 500],
  }),
}
