import { z } from 'zod'
import { ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { reloadResult, routerHealth, routerReadiness } from '../health.ts'

const open = { method: 'GET', tag: 'Operations', auth: 'none' } as const

export const routerOperationEndpoints = {
  healthz: endpoint({
    id: 'healthz',
    path: '/healthz',
    summary: 'Whether the router is ready to serve',
    ...open,
    responses: { ...ok(routerHealth), 503: { description: 'Starting or draining.', schema: routerHealth } },
    errors: [403],
  }),
  readyz: endpoint({
    id: 'readyz',
    path: '/readyz',
    summary: 'Whether configuration, store, writer and spill are in order',
    ...open,
    responses: { ...ok(routerReadiness), 503: { description: 'The checks say why.', schema: routerReadiness } },
    errors: [403],
  }),
  metrics: endpoint({
    id: 'metrics',
    method: 'GET',
    path: '/metrics',
    tag: 'Operations',
    summary: 'Prometheus metrics',
    auth: 'router-key',
    responses: { 200: { description: 'Text exposition.', contentType: 'text/plain; version=0.0.4' } },
    errors: [401, 403],
  }),
  panel: endpoint({
    id: 'panel',
    path: '/panel',
    summary: 'A page that reads this API and verifies the chain in the browser',
    ...open,
    responses: { 200: { description: 'A page without data.', contentType: 'text/html' } },
    errors: [403],
  }),
  openapi: endpoint({
    id: 'openapi',
    path: '/openapi.json',
    summary: 'This document',
    ...open,
    responses: ok(z.looseObject({ openapi: z.string() })),
    errors: [403],
  }),
  reload: endpoint({
    id: 'reload',
    method: 'POST',
    path: '/-/reload',
    tag: 'Operations',
    summary: 'Read the routing configuration again; a bad one changes nothing',
    auth: 'router-admin',
    responses: ok(reloadResult),
    errors: [400, 401, 403, 500],
  }),
}
