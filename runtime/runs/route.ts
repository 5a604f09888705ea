import { runEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { createdRun } from './created-run.ts'
import type { RunService } from './service.ts'
import type { RunStore } from './store.ts'

export interface RunsDeps {
  runs: RunStore
  service: RunService
}

interface ById {
  principal: Principal
  params: { id: string }
}

/** Runs: start, read, end, fork (docs/spec/runtime.md §4). */
export function runOperations({ runs, service }: RunsDeps): Operation[] {
  const find = async ({ principal, params: { id } }: ById): Promise<Run> =>
    own(principal, await runs.get(id), 'run', id)

  /** Without asking a node for what it holds: a run is ended, signalled and deleted while its node is away. */
  const findSummary = async ({ principal, params: { id } }: ById): Promise<Run> =>
    own(principal, await runs.summary(id), 'run', id)

  async function again(_: unknown, runId: string): Promise<Run> {
    const run = await runs.get(runId)
    if (!run) throw notFound('run', runId)
    return createdRun(run)
  }

  return [
    keyedOperation(
      endpoints.create,
      async ({ principal, body, idempotency }) =>
        createdRun(await service.start(principal.tenantId, body, idempotency.bind)),
      { again, bodyKey: ({ idempotencyKey }) => idempotencyKey },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await runs.list(call.principal.tenantId, call.query, page)
      return page.cut(rows, ({ createdAt, id }) => ({ at: Date.parse(createdAt), id }))
    }),
    operation(endpoints.get, call => (call.query.fields === 'summary' ? findSummary(call) : find(call))),
    operation(endpoints.remove, async call => {
      await service.remove(await findSummary(call))
    }),
    operation(endpoints.cancel, async call => service.cancel(await findSummary(call), call.body.reason)),
    keyedOperation(
      endpoints.fork,
      async call => {
        const { fromStepId, input } = call.body
        return createdRun(await service.fork(await find(call), fromStepId, input, call.idempotency.bind))
      },
      { again },
    ),
    keyedOperation(
      endpoints.retry,
      async call => createdRun(await service.retry(await find(call), call.idempotency.bind)),
      { again },
    ),
    operation(endpoints.signal, async call => {
      await service.signal(await findSummary(call), call.params.name, call.body.value)
    }),
  ]
}
