import { z } from 'zod'
import { created, listOf, noContent, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { emptyBody, idParams, pageQuery } from '../conventions.ts'
import { errorBody } from '../error.ts'
import { healthz, readyz } from '../health.ts'
import {
  delivery,
  deliveryListQuery,
  deliveryParams,
  webhook,
  webhookCreate,
  webhookCreated,
  webhookTested,
  webhookUpdate,
} from '../webhook.ts'
import { BODY, BODY_OF_ONE, LIST, ONE } from './errors.ts'

const write = { tag: 'Webhooks', auth: 'bearer', scopes: ['webhooks:write'] } as const
const read = { method: 'GET', tag: 'Webhooks', auth: 'bearer', scopes: ['webhooks:read'] } as const
const open = { method: 'GET', tag: 'Operations', auth: 'none' } as const

export const webhookEndpoints = {
  create: endpoint({
    id: 'createWebhook',
    method: 'POST',
    path: '/v1/webhooks',
    summary: 'Create a webhook; its secret is shown once',
    ...write,
    body: webhookCreate,
    responses: created(webhookCreated),
    idempotent: true,
    errors: [...BODY, 409],
  }),
  list: endpoint({
    id: 'listWebhooks',
    path: '/v1/webhooks',
    summary: 'List webhooks',
    ...read,
    query: pageQuery,
    responses: listOf(z.array(webhook)),
    errors: LIST,
  }),
  update: endpoint({
    id: 'updateWebhook',
    method: 'PUT',
    path: '/v1/webhooks/{id}',
    summary: 'Change a webhook; fields left out stay',
    ...write,
    params: idParams,
    body: webhookUpdate,
    responses: ok(webhook),
    errors: BODY_OF_ONE,
  }),
  remove: endpoint({
    id: 'deleteWebhook',
    method: 'DELETE',
    path: '/v1/webhooks/{id}',
    summary: 'Delete a webhook',
    ...write,
    params: idParams,
    responses: noContent,
    errors: ONE,
  }),
  test: endpoint({
    id: 'testWebhook',
    method: 'POST',
    path: '/v1/webhooks/{id}/test',
    summary: 'Send a test delivery',
    ...write,
    params: idParams,
    body: emptyBody,
    responses: ok(webhookTested),
    errors: BODY_OF_ONE,
  }),
  deliveries: endpoint({
    id: 'listWebhookDeliveries',
    path: '/v1/webhooks/{id}/deliveries',
    summary: 'What was sent, and how it went; with outcome=failed, what was given up',
    ...read,
    params: idParams,
    query: deliveryListQuery,
    responses: listOf(z.array(delivery)),
    errors: ONE,
  }),
  redeliver: endpoint({
    id: 'redeliverWebhook',
    method: 'POST',
    path: '/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver',
    summary: 'Send a delivery again, from the first attempt',
    ...write,
    params: deliveryParams,
    body: emptyBody,
    responses: ok(delivery),
    errors: BODY_OF_ONE,
  }),
}

export const operationEndpoints = {
  mcp: endpoint({
    id: 'mcp',
    method: 'POST',
    path: '/mcp',
    tag: 'Operations',
    summary: 'The runtime as an MCP server over streamable HTTP',
    description: 'JSON-RPC messages of the Model Context Protocol. A tool needs the scope of the operation behind it.',
    auth: 'bearer',
    body: z.looseObject({ jsonrpc: z.literal('2.0') }),
    responses: {
      ...ok(z.looseObject({ jsonrpc: z.literal('2.0') })),
      202: { description: 'A notification was taken.' },
    },
    errors: [400, 401, 413, 500],
    errorSchema: z.union([
      errorBody,
      z.looseObject({ jsonrpc: z.literal('2.0'), error: z.looseObject({ code: z.int(), message: z.string() }) }),
    ]),
  }),
  healthz: endpoint({
    id: 'healthz',
    path: '/healthz',
    summary: 'Whether the process lives',
    ...open,
    responses: ok(healthz),
    errors: [],
  }),
  readyz: endpoint({
    id: 'readyz',
    path: '/readyz',
    summary: 'Whether the service can take work',
    ...open,
    responses: { ...ok(readyz), 503: { description: 'Not ready; the checks say why.', schema: readyz } },
    errors: [],
  }),
  metrics: endpoint({
    id: 'metrics',
    method: 'GET',
    path: '/metrics',
    tag: 'Operations',
    summary: 'Prometheus metrics',
    auth: 'metrics',
    responses: { 200: { description: 'Text exposition.', contentType: 'text/plain; version=0.0.4' } },
    errors: [401],
  }),
  openapi: endpoint({
    id: 'openapi',
    path: '/openapi.json',
    summary: 'This document',
    ...open,
    responses: ok(z.looseObject({ openapi: z.string() })),
    errors: [],
  }),
  docs: endpoint({
    id: 'docs',
    path: '/docs',
    summary: 'The reference for people',
    ...open,
    responses: { 200: { description: 'A page.', contentType: 'text/html' } },
    errors: [],
  }),
}
