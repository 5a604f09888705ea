import { ApiError } from '../../shared/http/api-error.ts'
import { fromUsd } from '../../shared/money/money.ts'
import { runEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import type { Run, RunListQuery } from '../../shared/wire/runtime/run.ts'
import { userMessage } from '../execution/harness/conversation.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { createdRun } from './created-run.ts'
import { MOST_COUNTED } from './run-list.ts'
import type { RunIndex } from './search/run-index.ts'
import type { RunService } from './service.ts'
import type { RunStore } from './store.ts'

export interface RunsDeps {
  runs: RunStore & {
    /** Without a request to a node. */
    near: RunStore['get']
  }
  index: Pick<RunIndex, 'catchUp'>
  service: RunService
}

interface ById {
  principal: Principal
  params: { id: string }
}

/** Runs: start, read, end, fork (docs/spec/runtime.md §4). */
export function runOperations({ runs, index, service }: RunsDeps): Operation[] {
  const find = async ({ principal, params: { id } }: ById): Promise<Run> =>
    own(principal, await runs.get(id), 'run', id)

  /** Without asking a node for what it holds: a run is ended, signalled and deleted while its node is away. */
  const findSummary = async ({ principal, params: { id } }: ById): Promise<Run> =>
    own(principal, await runs.summary(id), 'run', id)

  async function again(_: unknown, runId: string): Promise<Run> {
    const run = await runs.near(runId)
    if (!run) throw notFound('run', runId)
    return createdRun(run)
  }

  return [
    keyedOperation(
      endpoints.create,
      async ({ principal, body, idempotency }) => service.start(principal.tenantId, body, idempotency.bind),
      { again, byReference: true, bodyKey: ({ idempotencyKey }) => idempotencyKey },
    ),
    operation(endpoints.list, async call => {
      const { principal, query, context } = call
      refuseUnsorted(query)
      const page = pageOf(call)
      if (query.q !== undefined) await index.catchUp()
      const rows = await runs.list(principal.tenantId, query, page)
      if (query.count) context.header('total-count', counted(await runs.count(principal.tenantId, query)))
      const cut = page.cut(rows, run => ({ at: sortValue(run, query.sort), id: run.id }))
      return query.fields === 'title' ? cut.map(toTitled) : cut
    }),
    operation(endpoints.get, call => (call.query.fields === 'summary' ? findSummary(call) : find(call))),
    operation(endpoints.remove, async call => {
      await service.remove(await findSummary(call))
    }),
    operation(endpoints.cancel, async call => service.cancel(await findSummary(call), call.body.reason)),
    keyedOperation(
      endpoints.fork,
      async call => {
        return service.fork(await find(call), call.body, call.idempotency.bind)
      },
      { again, byReference: true },
    ),
    keyedOperation(endpoints.retry, async call => service.retry(await find(call), call.idempotency.bind), {
      again,
      byReference: true,
    }),
    operation(endpoints.signal, async call => {
      await service.signal(await findSummary(call), call.params.name, call.body.value)
    }),
  ]
}

const counted = (runs: number): string => (runs > MOST_COUNTED ? `${MOST_COUNTED}+` : String(runs))

/** Where a run stands in its list. */
function sortValue({ createdAt, costUsd, startedAt, finishedAt }: Run, sort: RunListQuery['sort']): number {
  if (sort === undefined) return Date.parse(createdAt)
  if (sort === 'costUsd') return fromUsd(costUsd)
  if (finishedAt === undefined || startedAt === undefined) return 0
  return Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt))
}

/** A sorted list is of ended runs of a tenant, and of no narrower circle. */
function refuseUnsorted({ sort, sessionId, scheduleId, parentRunId }: RunListQuery): void {
  if (sort === undefined || (sessionId ?? scheduleId ?? parentRunId) === undefined) return
  const message = 'expected no sessionId, scheduleId or parentRunId beside it'
  throw new ApiError('validation_failed', `sort: ${message}`, { details: [{ path: 'sort', message }] })
}

const MOST_CHARS = 120

/** The beginning of what a run was told, on one line; undefined where nothing can be said. */
export function titleOf(input: Run['input']): string | undefined {
  if (input === undefined || Object.keys(input).length === 0) return undefined
  const words = userMessage(input)
    .slice(0, 4 * MOST_CHARS)
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (words === '') return undefined
  return words.length <= MOST_CHARS ? words.toWellFormed() : `${words.slice(0, MOST_CHARS).toWellFormed()}…`
}

/** A run as a list shows it: with a title in the place of what it was given and said. */
function toTitled({ input, output: _, ...run }: Run): Run {
  const title = titleOf(input)
  return { ...run, ...(title !== undefined && { title }) }
}
