import { ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { emptyBody, idParams } from '../conventions.ts'
import { receipt, receiptKeys, verifyRequest, verifyResult } from '../receipt.ts'
import { BODY, BODY_OF_ONE, ONE } from './errors.ts'

export const receiptEndpoints = {
  get: endpoint({
    id: 'getReceipt',
    method: 'GET',
    path: '/v1/runs/{id}/receipt',
    tag: 'Receipts',
    summary: "Read a finished run's receipt",
    auth: 'bearer',
    scopes: ['receipts:read'],
    params: idParams,
    responses: ok(receipt),
    errors: [...ONE, 409, 503],
  }),
  issue: endpoint({
    id: 'issueReceipt',
    method: 'POST',
    path: '/v1/runs/{id}/receipt',
    tag: 'Receipts',
    summary: 'The same receipt, for clients that ask for it to be issued',
    auth: 'bearer',
    scopes: ['receipts:read'],
    params: idParams,
    body: emptyBody,
    responses: ok(receipt),
    errors: [...BODY_OF_ONE, 409],
  }),
  verify: endpoint({
    id: 'verifyReceipt',
    method: 'POST',
    path: '/v1/runs/receipts/verify',
    tag: 'Receipts',
    summary: 'Verify a receipt',
    auth: 'bearer',
    scopes: ['receipts:read'],
    body: verifyRequest,
    responses: ok(verifyResult),
    errors: BODY,
  }),
  verifyPublic: endpoint({
    id: 'verifyReceiptPublic',
    method: 'POST',
    path: '/receipts/verify',
    tag: 'Receipts',
    summary: 'Verify a receipt without a key',
    description: 'No key is needed, but one that is sent must be good.',
    auth: 'none',
    body: verifyRequest,
    responses: ok(verifyResult),
    errors: [400, 401, 413, 500, 503],
  }),
  keys: endpoint({
    id: 'getReceiptKeys',
    method: 'GET',
    path: '/.well-known/platform-receipts',
    tag: 'Receipts',
    summary: 'The public keys that receipts are signed with',
    auth: 'none',
    responses: ok(receiptKeys),
    errors: [500],
  }),
}
