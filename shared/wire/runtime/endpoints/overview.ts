import { ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { overview, overviewQuery } from '../overview.ts'
import { LIST } from './errors.ts'

export const overviewEndpoints = {
  get: endpoint({
    id: 'getOverview',
    method: 'GET',
    path: '/v1/overview',
    tag: 'Runs',
    summary: 'How the runs of a tenant went lately: outcomes, latency, cost, failures by cause, beside the time before',
    description: 'Computed once for all callers of a tenant and range, every few seconds at most. Answers `ETag`.',
    auth: 'bearer',
    scopes: ['runs:read'],
    query: overviewQuery,
    responses: {
      ...ok(overview, 'Counted when a run ends.'),
      304: { description: 'What `If-None-Match` names is still the newest.' },
    },
    errors: LIST,
  }),
}
