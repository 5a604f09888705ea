import { overviewEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/overview.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { OverviewService } from './service.ts'

export interface OverviewDeps {
  overviews: OverviewService
}

/** How the runs of a tenant went lately (docs/spec/runtime.md §15). */
export function overviewOperations({ overviews }: OverviewDeps): Operation[] {
  return [
    operation(endpoints.get, async ({ principal: { tenantId }, query: { range }, context }) => {
      const { overview, etag } = await overviews.get(tenantId, range)
      context.header('etag', etag)
      if (context.req.header('if-none-match') === etag) return context.body(null, 304)
      return overview
    }),
  ]
}
